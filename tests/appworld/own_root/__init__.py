"""Own people, tasks and solutions for a small AppWorld root. Runs under AppWorld's interpreter."""
