base: 7.2.12-cloud-amd64 (1 boot, 1 run)
new:  7.3.4-cloud-amd64 (1 boot, 1 run)
verdict: cannot tell: fault_completed: only one boot on each side: the unit
  is the boot, and runs of one boot share its layout

        base   %change          new    metric
---------------------------------------------------------------------------
           0         -         2048  ? fault_completed *
           1    +0.00%            1  ? ptes_per_hold *
           0         -         4096  ? fault_attempts
           0         -         2048  ? fault_refused
       250ms    +0.80%        252ms  ? sys_ns
       10000    +0.00%        10000  ? maxrss_kib
        2048    +0.00%         2048  ? ptes_installed
      5.00ms    +0.00%       5.00ms  ? user_ns
       1.23s    +0.00%        1.23s  ? wall_ns

! worse, + better, = same, ~ changed, ? cannot tell; * decides
16 more say nothing new
