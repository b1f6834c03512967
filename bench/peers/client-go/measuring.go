package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// memory gives a line of /proc/self/status in bytes: VmRSS is now, VmHWM the most it ever was.
func memory(name string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	check(err)
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, name+":") {
			kilobytes, err := strconv.ParseFloat(strings.Fields(line)[1], 64)
			check(err)
			return kilobytes * 1024
		}
	}
	return 0
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func seconds(at syscall.Timeval) float64 {
	return float64(at.Sec) + float64(at.Usec)/1e6
}

// settle gives back to the system what is not in use, so that only what is held counts.
func settle() {
	time.Sleep(2 * time.Second)
	runtime.GC()
	debug.FreeOSMemory()
	time.Sleep(500 * time.Millisecond)
}

// aSecond says how often a second something can be done, over about a second.
func aSecond(run func()) float64 {
	run()
	began, times := time.Now(), 0
	for time.Since(began) < time.Second {
		run()
		times++
	}
	return float64(times) / time.Since(began).Seconds()
}
