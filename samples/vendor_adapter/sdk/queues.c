/* Queues and fences. The chip works whenever it is waited for. It takes turns over the queues, the last one first: an order that programs which
   forget to wait for something do not survive. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "device.h"

/* A fence: its queue and the number of its task there, from 1. */
static toy_fence fence_of(uint32_t queue, uint64_t number) { return (toy_fence)queue << 48 | number; }

static bool passed(const toy_device *d, toy_fence fence) {
  return fence == 0 || d->lines[fence >> 48].done >= (fence & (((toy_fence)1 << 48) - 1));
}

static bool is_fence(const toy_device *d, toy_fence fence) {
  return fence == 0 || (fence >> 48 < TOY_QUEUES && (fence & (((toy_fence)1 << 48) - 1)) <= d->lines[fence >> 48].submitted);
}

static void finish_first(toy_line *line) {
  toy_task *task = &line->tasks[line->first];
  if (task->work != WORK_WAIT) line->done++;
  free(task->tensors);
  line->first = (line->first + 1) % TOY_DEPTH, line->count--;
}

void toy_drop(toy_device *d) {
  for (uint32_t q = 0; q < TOY_QUEUES; q++)
    while (d->lines[q].count != 0) finish_first(&d->lines[q]);
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void run_first(toy_device *d, toy_line *line) {
  toy_task *task = &line->tasks[line->first];
  uint64_t start = now();
  toy_error error = toy_execute(d, task);
  d->busy += now() - start;
  if (error != TOY_OK) {
    d->failed = error, d->failed_cookie = task->cookie;
    toy_drop(d);
    return;
  }
  finish_first(line);
}

/* One task of every queue whose first one may start; whether there was any. */
static bool turn(toy_device *d) {
  bool any = false;
  for (uint32_t q = TOY_QUEUES; q-- > 0;) {
    toy_line *line = &d->lines[q];
    while (line->count != 0 && line->tasks[line->first].work == WORK_WAIT && passed(d, line->tasks[line->first].fence)) finish_first(line);
    if (line->count == 0 || line->tasks[line->first].work == WORK_WAIT) continue;
    run_first(d, line), any = true;
  }
  return any;
}

static toy_error told(toy_device *d) {
  toy_error error = d->failed;
  d->failed = TOY_OK;
  return error;
}

toy_error toy_fence_wait(toy_device *d, toy_fence fence) {
  if (!is_fence(d, fence)) return toy_say(d, TOY_E_ARGUMENT, "a fence that was never made");
  while (!passed(d, fence) && turn(d)) continue;
  return told(d);
}

toy_error toy_finish(toy_device *d) {
  while (turn(d)) continue;
  return told(d);
}

uint64_t toy_failed(const toy_device *d) { return d->failed_cookie; }

uint64_t toy_busy_nanoseconds(const toy_device *d) { return d->busy; }

/* The task goes to the end of its queue, which is worked off until there is a place. */
static toy_error enter(toy_device *d, uint32_t queue, const toy_task *task) {
  if (queue >= TOY_QUEUES) return toy_say(d, TOY_E_ARGUMENT, "queue %u of %d", queue, TOY_QUEUES);
  toy_line *line = &d->lines[queue];
  while (line->count == TOY_DEPTH && turn(d)) continue;
  if (d->failed != TOY_OK) return told(d);
  line->tasks[(line->first + line->count++) % TOY_DEPTH] = *task;
  return TOY_OK;
}

toy_error toy_queue_wait(toy_device *d, uint32_t queue, toy_fence fence) {
  if (!is_fence(d, fence)) return toy_say(d, TOY_E_ARGUMENT, "a fence that was never made");
  toy_task task = {.work = WORK_WAIT, .fence = fence};
  return passed(d, fence) ? TOY_OK : enter(d, queue, &task);
}

static toy_error occasion(toy_device *d) {
  toy_error fault = d->fault;
  if (d->lost) return toy_say(d, TOY_E_LOST, "it was lost before");
  if (fault == TOY_OK || fault == TOY_E_INDEX || fault == TOY_E_LOST) return TOY_OK; /* the last two: when it runs */
  return toy_say(d, fault, "as TOY_FAULT asks for");
}

/* Tensors and arguments in one block of the task. */
static toy_error submit(toy_device *d, uint32_t queue, toy_task *task, const toy_tensor *tensors, const void *arguments, toy_fence *fence) {
  uint32_t count = task->inputs + task->outputs;
  if (count > TOY_MOST_TENSORS) return toy_say(d, TOY_E_ARGUMENT, "%u tensors", count);
  task->tensors = calloc(1, count * sizeof *task->tensors + task->argument_bytes + 1);
  if (!task->tensors) return toy_say(d, TOY_E_ARGUMENT, "the host has no memory for a job");
  task->arguments = task->tensors + count;
  if (task->argument_bytes != 0) memcpy(task->arguments, arguments, task->argument_bytes);
  toy_error error = occasion(d);
  if (error == TOY_OK) error = toy_inspect(d, tensors, task);
  if (error == TOY_OK) error = enter(d, queue, task);
  if (error != TOY_OK) {
    free(task->tensors);
    return error;
  }
  *fence = fence_of(queue, ++d->lines[queue].submitted);
  return TOY_OK;
}

toy_error toy_submit(toy_device *d, uint32_t queue, const toy_job *job, toy_fence *fence) {
  toy_task task = {.work = WORK_JOB, .cookie = job->cookie, .entry = toy_find_entry(job->entry), .inputs = job->inputs,
                   .outputs = job->outputs, .argument_bytes = job->argument_bytes, .line_buffer = job->line_buffer};
  if (!task.entry) return toy_say(d, TOY_E_ENTRY, "'%s'", job->entry);
  return submit(d, queue, &task, job->tensors, job->arguments, fence);
}

toy_error toy_transfer(toy_device *d, uint32_t queue, const toy_tensor tensors[2], uint64_t cookie, toy_fence *fence) {
  toy_task task = {.work = WORK_TRANSFER, .cookie = cookie, .inputs = 1, .outputs = 1};
  return submit(d, queue, &task, tensors, NULL, fence);
}
