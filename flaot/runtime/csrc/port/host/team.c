/* Threads that wait for parts of a step: spinning for a while, since the next step is near, then asleep. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include "port/host/host.h"

enum { SPINS = 2000 };

typedef struct fl_pool {
  fl_team team;
  fl_part_fn fn;
  void *arg;
  uint32_t parts, started;
  uint32_t generation, pending, sleepers, stop; /* atomic */
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  pthread_t threads[FL_MAX_THREADS];
  uint32_t next_part; /* atomic; hands every thread its number */
} fl_pool;

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

static uint32_t load(const uint32_t *p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }

static void sleep_until_changed(fl_pool *pool, uint32_t seen) {
  pthread_mutex_lock(&pool->mutex);
  __atomic_fetch_add(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
  while (load(&pool->generation) == seen) pthread_cond_wait(&pool->wake, &pool->mutex);
  __atomic_fetch_sub(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&pool->mutex);
}

static uint32_t wait_for_work(fl_pool *pool, uint32_t seen) {
  for (int i = 0; i < SPINS && load(&pool->generation) == seen; i++) relax();
  if (load(&pool->generation) == seen) sleep_until_changed(pool, seen);
  return load(&pool->generation);
}

static void *worker(void *self) {
  fl_pool *pool = self;
  uint32_t part = __atomic_add_fetch(&pool->next_part, 1, __ATOMIC_SEQ_CST), seen = 0;
  for (;;) {
    seen = wait_for_work(pool, seen);
    if (load(&pool->stop)) return NULL;
    if (part < pool->parts) pool->fn(pool->arg, part);
    __atomic_fetch_sub(&pool->pending, 1, __ATOMIC_SEQ_CST);
  }
}

static void announce(fl_pool *pool) {
  __atomic_fetch_add(&pool->generation, 1, __ATOMIC_SEQ_CST);
  if (load(&pool->sleepers) == 0) return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
}

static void parallel(void *self, fl_part_fn fn, void *arg, uint32_t parts) {
  fl_pool *pool = self;
  pool->fn = fn, pool->arg = arg, pool->parts = parts;
  __atomic_store_n(&pool->pending, pool->started, __ATOMIC_SEQ_CST);
  announce(pool);
  fn(arg, 0);
  for (int i = 0; load(&pool->pending) != 0; i++) i < SPINS ? relax() : (void)sched_yield();
}

fl_team *fl_host_team(uint32_t threads) {
  if (threads < 1 || threads > FL_MAX_THREADS) return NULL;
  fl_pool *pool = calloc(1, sizeof *pool);
  if (!pool) return NULL;
  pool->team = (fl_team){parallel, pool, threads};
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->wake, NULL);
  while (pool->started + 1 < threads && pthread_create(&pool->threads[pool->started], NULL, worker, pool) == 0) pool->started++;
  if (pool->started + 1 == threads) return &pool->team;
  fl_host_team_free(&pool->team);
  return NULL;
}

void fl_host_team_free(fl_team *team) {
  if (!team) return;
  fl_pool *pool = team->self;
  __atomic_store_n(&pool->stop, 1, __ATOMIC_SEQ_CST);
  announce(pool);
  for (uint32_t i = 0; i < pool->started; i++) pthread_join(pool->threads[i], NULL);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->mutex);
  free(pool);
}
