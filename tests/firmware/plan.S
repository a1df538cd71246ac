  .section .plan, "a"
  .balign 64
  .globl plan_start, plan_end
plan_start:
  .incbin PLAN
plan_end:
