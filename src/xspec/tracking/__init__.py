"""What the journals say, as tables and in MLflow. `project` brings both up to date."""
