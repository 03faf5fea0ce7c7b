base: 7.2.12-cloud-amd64 (8 boots, 16 runs)
new:  7.3.4-cloud-amd64 (8 boots, 16 runs)
unlike: THP: always / never
unlike: fault_around_bytes: 65536 / unknown
verdict: cannot tell: the machines are not alike (THP, fault_around_bytes);
  --ignore-state compares them all the same

        base   %change          new    metric
---------------------------------------------------------------------------
      1.01ms    +8.00%       1.09ms  ! touch_ns *
          16    +0.00%           16  = ptes_per_hold *
3.33..3.58us         - 3.58..3.84us  ! fault_latency.p50
      9.97us    +8.00%       10.8us  ! fault_latency
       1.01s    +8.00%        1.09s  ! wall_ns
      992558    -7.41%       919034  ! rate
backing=anon:
           8    +0.00%            8  ? fault_completed

! worse, + better, = same, ~ changed, ? cannot tell; * decides
22 more say nothing new
boots not interleaved
emulated CPU: times are for screening only
