base: 7.2.12-cloud-amd64 (8 boots, 16 runs)
new:  7.3.4-cloud-amd64 (8 boots, 16 runs)
verdict: worse: touch_ns

        base   %change          new    metric
---------------------------------------------------------------------------
      1.01ms    +8.00%       1.09ms  ! touch_ns *
          16    +0.00%           16  = ptes_per_hold *
3.33..3.58us         - 3.58..3.84us  ! fault_latency.p50
      9.97us    +8.00%       10.8us  ! fault_latency
       1.01s    +8.00%        1.09s  ! wall_ns
      992558    -7.41%       919034  ! rate
32.8..36.9us         - 32.8..36.9us  ? fault_latency.p99
          16         -           16  ? ptes_per_hold.p50
          16         -           16  ? ptes_per_hold.p99
         n/a         -          n/a  ? exit_mmap_latency
         n/a         -          n/a  ? exit_mmap_latency.p50
         n/a         -          n/a  ? exit_mmap_latency.p99
         n/a         -          n/a  ? munmap_latency
         n/a         -          n/a  ? munmap_latency.p50
         n/a         -          n/a  ? munmap_latency.p99
         n/a         -          n/a  ? pages_migrated
         n/a         -          n/a  ? pages_moved
         n/a         -          n/a  ? pmds_zapped
         n/a         -          n/a  ? rss_before
         n/a         -          n/a  ? rss_khugepaged
         n/a         -          n/a  ? rss_swapoff
         n/a         -          n/a  ? rss_uffd_copy
         n/a         -          n/a  ? rss_unmapped
         136    +0.00%          136  = fault_completed
       10000    +0.00%        10000  = maxrss_kib
       252ms    +0.00%        252ms  = sys_ns
      5.00ms    +0.00%       5.00ms  = user_ns
backing=anon:
           8    +0.00%            8  ? fault_completed
backing=file:
         128    +0.00%          128  = fault_completed

! worse, + better, = same, ~ changed, ? cannot tell; * decides
boots not interleaved
emulated CPU: times are for screening only
