// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sleeping in the kernel for a counter or for a record, without the library, and what ends
 * the sleep. No thread may be left asleep, or look at an object that is gone.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "native.h"
#include "native_raw.h"

#define LEN		4096
#define SLEEPERS	3	/* for each of two objects */

/**
 * struct sleeper - a thread that sleeps
 * @bell: doorbell file
 * @wait: what for
 * @tid: it runs
 * @err: errno that it came back with, or 0; -1 until then
 */
struct sleeper {
	pthread_t thread;
	int bell;
	struct vrnic_wait wait;
	int tid;
	int err;
};

FIXTURE(wait)
{
	struct raw_fifo fifo;
	struct raw_counter counter;
	struct sleeper sleeper[2 * SLEEPERS];
};

FIXTURE_SETUP(wait)
{
	NEED_NATIVE();
	ASSERT_OK(raw_open(&self->fifo, 64, 256, LEN));
	ASSERT_OK(raw_counter(&self->fifo, 0, &self->counter));
	self->counter.cell->remaining = 100;
}

FIXTURE_TEARDOWN(wait)
{
	/* a test that destroyed them says so */
	if (self->counter.cell)
		EXPECT_OK(raw_counter_destroy(&self->fifo, &self->counter));
	EXPECT_OK(raw_close(&self->fifo));
}

static void *sleep_there(void *arg)
{
	struct sleeper *s = arg;
	int ret;

	__atomic_store_n(&s->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	ret = ioctl(s->bell, VRNIC_WAIT, &s->wait);
	__atomic_store_n(&s->err, ret ? errno : 0, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_asleep(struct sleeper *s)
{
	int tid = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);
	char path[64], state = 0;
	FILE *stat;

	if (!tid)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	stat = fopen(path, "r");
	if (!stat)
		return false;
	if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(stat);
	return state == 'S';
}

static int start_sleeper(struct sleeper *s, int bell,
			 const struct vrnic_wait *wait)
{
	int ret;

	*s = (struct sleeper){ .bell = bell, .wait = *wait, .err = -1 };
	ret = pthread_create(&s->thread, NULL, sleep_there, s);
	while (!ret && !is_asleep(s))
		usleep(200);
	return ret;
}

/* Half of them for the counter, half for a record; all for ever. */
static int start_all(FIXTURE_DATA(wait) *self)
{
	struct vrnic_wait wait = {
		.what = VRNIC_WAIT_COUNTER, .id = self->counter.number,
		.timeout_ns = VRNIC_WAIT_FOREVER,
	};
	int i, ret = 0;

	for (i = 0; i < 2 * SLEEPERS && !ret; i++) {
		if (i == SLEEPERS) {
			wait.what = VRNIC_WAIT_FIFO;
			wait.id = self->fifo.address.fifo;
		}
		ret = start_sleeper(&self->sleeper[i], self->fifo.bell, &wait);
	}
	return ret;
}

/* What the sleepers from @first on woke up with, if that is the same for all. */
static int woke_with(FIXTURE_DATA(wait) *self, int first, int nr)
{
	int i, err = -1;

	for (i = first; i < first + nr; i++) {
		if (pthread_join(self->sleeper[i].thread, NULL))
			return -1;
		if (i > first && self->sleeper[i].err != err)
			return -1;
		err = self->sleeper[i].err;
	}
	return err;
}

static bool all_asleep(FIXTURE_DATA(wait) *self, int first, int nr)
{
	int i;

	for (i = first; i < first + nr; i++)
		if (!is_asleep(&self->sleeper[i]))
			return false;
	return true;
}

static void nothing(int sig)
{
}

TEST_F(wait, signals_interrupt)
{
	struct sigaction act = { .sa_handler = nothing };
	int i;

	ASSERT_OK(sigaction(SIGUSR1, &act, NULL));
	ASSERT_OK(start_all(self));
	for (i = 0; i < 2 * SLEEPERS; i++) {
		ASSERT_OK(pthread_kill(self->sleeper[i].thread, SIGUSR1));
		EXPECT_EQ(EINTR, woke_with(self, i, 1));
		/* and nobody else */
		EXPECT_TRUE(all_asleep(self, i + 1, 2 * SLEEPERS - i - 1));
	}
}

TEST_F(wait, a_destroyed_counter_wakes_its_own)
{
	ASSERT_OK(start_all(self));
	ASSERT_OK(raw_counter_destroy(&self->fifo, &self->counter));
	self->counter.cell = NULL;
	EXPECT_EQ(ECANCELED, woke_with(self, 0, SLEEPERS));
	EXPECT_TRUE(all_asleep(self, SLEEPERS, SLEEPERS));
	ASSERT_OK(raw_destroy(self->fifo.dev.ctx, VRNIC_OBJECT_FIFO,
			      VRNIC_METHOD_FIFO_DESTROY,
			      VRNIC_ATTR_FIFO_DESTROY_HANDLE, self->fifo.handle));
	self->fifo.address.secret = 0;
	EXPECT_EQ(ECANCELED, woke_with(self, SLEEPERS, SLEEPERS));
}

/* Mappings keep the file: without them, closing it destroys everything. */
static int close_file(FIXTURE_DATA(wait) *self)
{
	int null = open("/dev/null", O_RDWR);
	int ret;

	munmap(self->counter.page, sysconf(_SC_PAGESIZE));
	munmap(self->fifo.inject, self->fifo.inject_bytes);
	munmap(self->fifo.receive, self->fifo.receive_bytes);
	self->counter.cell = NULL;
	self->fifo.inject = NULL;
	self->fifo.receive = NULL;
	self->fifo.address.secret = 0;
	/* the library closes its number once more, and finds something there */
	ret = dup2(null, self->fifo.dev.ctx->cmd_fd);
	close(null);
	return ret < 0 ? -errno : 0;
}

TEST_F(wait, the_file_is_closed)
{
	struct vrnic_wait wait = { .what = VRNIC_WAIT_FIFO };

	ASSERT_OK(start_all(self));
	ASSERT_OK(close_file(self));
	EXPECT_EQ(ECANCELED, woke_with(self, 0, 2 * SLEEPERS));
	/* the doorbell is still open, and rings nothing */
	EXPECT_EQ(-1, ioctl(self->fifo.bell, VRNIC_WAIT, &wait));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(-1, ioctl(self->fifo.bell, VRNIC_ADVANCE, 1UL));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(-1, ioctl(self->fifo.bell, VRNIC_ADVANCE_DEFERRED, 1UL));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(-1, ioctl(self->fifo.bell, VRNIC_DOORBELL, 1UL));
	EXPECT_EQ(EIO, errno);
}

/* The thread that sleeps is what dies. */
TEST_F(wait, the_sleeper_is_killed)
{
	int status;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		/* its own: what the parent opened is the parent's */
		FIXTURE_DATA(wait) mine = {};

		if (raw_open(&mine.fifo, 64, 256, LEN) ||
		    raw_counter(&mine.fifo, 0, &mine.counter))
			_exit(101);
		mine.counter.cell->remaining = 1;
		if (start_all(&mine))
			_exit(102);
		kill(getpid(), SIGKILL);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGKILL, WTERMSIG(status));
}

TEST_F(wait, time_is_up)
{
	struct vrnic_wait wait = {
		.what = VRNIC_WAIT_COUNTER, .id = self->counter.number,
		.timeout_ns = 2000000,
	};

	EXPECT_EQ(-1, ioctl(self->fifo.bell, VRNIC_WAIT, &wait));
	EXPECT_EQ(ETIME, errno);
	wait.what = VRNIC_WAIT_FIFO;
	wait.id = self->fifo.address.fifo;
	EXPECT_EQ(-1, ioctl(self->fifo.bell, VRNIC_WAIT, &wait));
	EXPECT_EQ(ETIME, errno);
}

TEST_HARNESS_MAIN
