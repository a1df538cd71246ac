"""The text ``flaot hcd new`` prints: a small chip that validates, every other key beside it in comments."""

TEMPLATE = """\
# A hardware capability descriptor. Lines behind '#' show optional keys; all keys: docs/hcd.md, or 'flaot hcd schema' for an editor.
# Check it with: flaot hcd validate my_chip.hcd
hcd_version: 1
# extends: npu_v2                      # a bundled descriptor or a file beside this one; then state only what differs

chip:
  name: My-NPU                         # as messages and plans show it
  vendor: Me
  version: 1.0.0                       # of this description
  device_type: npu                     # decides which target executes it
  # revision: A0

# clock_mhz: 1000

compute_units:                         # a unit's name is its kind unless 'kind' is stated
  fp16:
    count: 64                          # identical units
    peak_tflops: 8                     # of all units together; also peak_gflops, peak_tops, peak_gops
    supported_layouts: [NCHW, NHWC]
    # arithmetic:
    #   - {inputs: [float16, float16], accumulator: float32, macs_per_cycle: 64}
    # tile: {rows: 16, columns: 16, depth: 16}
    # launch_cycles: 200
    # concurrency: 1
  int8:
    count: 64
    peak_tops: 16
  # attention: {max_sequence_length: 2048, supported_heads: [1, 2, 4, 8]}

memory:
  on_chip_cache: {size_kb: 2048, bandwidth_gb_per_s: 100}
  off_chip_memory: {bandwidth_gb_per_s: 25.6}
  # regions:
  #   - {name: cache, kind: sram, size_kb: 2048, base_address: 0, read_gb_per_s: 100, preferred_for: [activations, scratch]}
  #   - {name: main, kind: dram, size_kb: 1048576, base_address: 1073741824, bus_bits: 64, preferred_for: [constants, io]}

tensor:
  max_rank: 5
  supported_dtypes: [float16, int8]
  default_layout: NHWC

constraints:
  max_batch_size: 64
  # max_sequence_length: 2048
  memory_alignment_bytes: 64           # a power of two

# operators:                           # when present, whatever is not listed is not supported
#   Conv:
#     units: [fp16]
#     dtypes:
#       - {inputs: [float16, float16], outputs: [float16]}
#     layouts_in: [NHWC]
#     requires:
#       - {attribute: kernel_shape, at_most: 11, reason: the window buffer has 11 lines}
#       - {attribute: strides, one_of: [1, 2], when: {attribute: group, at_least: 2}}

# fusions:
#   - name: conv_relu
#     level: 1
#     pattern:
#       - {id: c, op: Conv, inputs: [x, w]}
#       - {id: r, op: Relu, inputs: [c]}
#     result: Conv

# layouts:
#   NCHWc8: {axes: NCHWc, blocks: {C: 8}, pad_to: {C: 8}, converted_by: [dma], convert_gb_per_s: 10}

# dma: {channels: 2, setup_cycles: 100, dimensions: 2}

# quantization: {schemes: [per_tensor_symmetric], bias_dtype: int32, scale_form: multiplier_shift, rounding: half_to_even, saturate: true}

# numerics: {denormals: flush, float16_accumulator: float32, fma: true}

# host: {kernels: [generic], stack_kb: 64}

# limits: {max_steps: 10000, max_plan_bytes: 67108864}

# power: {cap_mw: 5000, energy_pj_per_mac: {float16: 1.5}, energy_pj_per_byte: {on_chip_cache: 1, off_chip_memory: 20}}

# policy: {fallback: warn}             # error, warn or allow the host to run what the chip lacks
"""
