base: 7.2.12-cloud-amd64 (5 boots, 5 runs)
new:  7.3.4-cloud-amd64 (5 boots, 5 runs)
verdict: worse: fault_completed

        base   %change          new    metric
---------------------------------------------------------------------------
           0         -         2048  ! fault_completed *
           1    +0.00%            1  = ptes_per_hold *
           0         -         4096  ! fault_attempts
           0         -         2048  ! fault_refused

! worse, + better, = same, ~ changed, ? cannot tell; * decides
21 more say nothing new
boots not interleaved
