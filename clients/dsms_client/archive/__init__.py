"""What people see of archives: pictures of their layouts, progress of jobs, reports."""
