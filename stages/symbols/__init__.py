"""What can be known of shapes and shape vectors without their numbers: symbolic integers."""
