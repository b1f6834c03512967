"""CronJobs: a Job at each time of a schedule."""
