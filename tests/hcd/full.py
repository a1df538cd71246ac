"""A descriptor that uses every optional group."""

FULL = """\
hcd_version: 1
chip: {name: Full, version: 1.0.0, revision: B1, device_type: acme_npu}
clock_mhz: 1000
compute_units:
  fp16:
    count: 4
    peak_tflops: 2.048
    supported_layouts: [NCHW, NHWC, NCHWc8]
    clock_mhz: 1000
    arithmetic:
      - {inputs: [float16, float16], accumulator: float32, macs_per_cycle: 256}
    tile: {rows: 16, columns: 16, depth: 32, channels: 8, height: 1, width: 4}
    launch_cycles: 200
    concurrency: 2
  int8:
    count: 4
    arithmetic:
      - {inputs: [int8, int8], accumulator: int32, macs_per_cycle: 512}
memory:
  on_chip_cache: {size_kb: 512, bandwidth_gb_per_s: 64}
  off_chip_memory: {bandwidth_gb_per_s: 16}
  regions:
    - {name: tcm, kind: tcm, size_kb: 128,
        base_address: 0, read_gb_per_s: 32, bus_bits: 256, visible_to: [fp16, int8], preferred_for: [scratch]}
    - {name: sram, kind: sram, size_kb: 512,
        base_address: 131072, rights: [read, write], latency_cycles: 4, burst_bytes: 32, preferred_for: [activations]}
    - {name: ddr, kind: dram, size_kb: 1048576,
        base_address: 1073741824, write_gb_per_s: 12.8, bus_bits: 64, clock_mhz: 800, transfers_per_cycle: 2}
    - {name: rom, kind: flash, size_kb: 4096,
        rights: [read, execute], visible_to: [dma], preferred_for: [constants], energy_pj_per_byte: 0.5}
tensor: {max_rank: 5, supported_dtypes: [float16, int8], default_layout: NCHWc8}
constraints: {max_batch_size: 8, memory_alignment_bytes: 64, bfloat16_emulation: true}
operators:
  Conv:
    units: [fp16]
    dtypes:
      - {inputs: [float16, float16], outputs: [float16]}
    layouts_in: [NHWC]
    layouts_out: [NHWC]
    min_rank: 3
    max_rank: 5
    in_place: false
    accumulator: float32
    requires:
      - {attribute: kernel_shape, at_least: 1, at_most: 11, max_product: 121, reason: the window buffer has 11 lines}
      - {attribute: strides, one_of: [1, 2], when: {attribute: group, at_least: 2}}
      - {input: W, constant: true}
    precision: sums in float32
  Relu: {in_place: true}
  Softmax: {supported: false, reason: no exponential}
fusions:
  - name: conv_relu
    level: 1
    pattern:
      - {id: c, op: Conv, inputs: [x, w], requires: [{attribute: group, at_most: 1}]}
      - {id: r, op: Relu, inputs: [c]}
    result: Conv
layouts:
  NCHWc8: {axes: NCHWc, blocks: {C: 8}, pad_to: {C: 8}, converted_by: [dma], convert_gb_per_s: 10, convert_setup_cycles: 50}
dma:
  channels: 2
  max_outstanding: 8
  setup_cycles: 100
  dimensions: 2
  gb_per_s: 12
  paths:
    - {source: tcm, target: ddr}
    - {source: ddr, target: tcm}
    - {source: sram, target: ddr}
    - {source: ddr, target: sram}
    - {source: rom, target: sram}
quantization:
  schemes: [per_tensor_asymmetric, per_channel_symmetric]
  channel_axis: 0
  zero_point_min: -128
  zero_point_max: 127
  bias_dtype: int32
  scale_form: multiplier_shift
  multiplier_bits: 31
  rounding: half_away_from_zero
  saturate: true
numerics:
  denormals: flush
  float16_accumulator: float32
  fma: true
  rounding: half_to_even
  approximations:
    Relu: {max_ulp: 1}
host: {kernels: [generic], isa: [avx2, fma, f16c], stack_kb: 64}
limits: {max_steps: 1000, max_plan_bytes: 1048576}
power: {idle_mw: 10, cap_mw: 500.5, energy_pj_per_mac: {float16: 1.5, int8: 0.25}, energy_pj_per_byte: {ddr: 20, sram: 1}}
policy: {fallback: error, max_relayouts: 2, max_relative_error: 0.0000001}
conformance:
  vectors:
    - op: Relu
      attributes: {"n": 1}
      inputs: [{dtype: float16, shape: [2], values: [-1, 2.5]}]
      outputs: [{dtype: float16, shape: [2], values: [0, 2.5]}]
      max_absolute_error: 0
"""
