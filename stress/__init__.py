"""What xspec is put through on loopback: thousands of faulty calls, kills, hostile servers and disks."""
