"""Speed, as ratios within one run: `make bench`. Each module measures one thing and prints JSON."""
