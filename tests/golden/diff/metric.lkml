base: 7.2.12-cloud-amd64 (8 boots, 16 runs)
new:  7.3.4-cloud-amd64 (8 boots, 16 runs)
verdict: worse: touch_ns

        base   %change          new    metric
---------------------------------------------------------------------------
3.33..3.58us         - 3.58..3.84us  ! fault_latency.p50
      9.97us    +8.00%       10.8us  ! fault_latency
32.8..36.9us         - 32.8..36.9us  ? fault_latency.p99

! worse, + better, = same, ~ changed, ? cannot tell; * decides
boots not interleaved
emulated CPU: times are for screening only
