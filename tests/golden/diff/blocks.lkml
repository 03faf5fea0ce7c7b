base: 7.2.12-cloud-amd64 (8 boots, 16 runs)
new:  7.3.4-cloud-amd64 (8 boots, 16 runs)
verdict: held: all primary metrics are the same or better

        base   %change          new    metric
---------------------------------------------------------------------------
      1.09ms    -7.41%       1.01ms  + touch_ns *
          16    +0.00%           16  = ptes_per_hold *
3.58..3.84us         - 3.33..3.58us  + fault_latency.p50
      919034    +8.00%       992558  + rate
      10.8us    -7.41%       9.97us  + fault_latency
       1.09s    -7.41%        1.01s  + wall_ns

! worse, + better, = same, ~ changed, ? cannot tell; * decides
23 more say nothing new
emulated CPU: times are for screening only
