"""All knowledge of torch: the self-check, iteration marks, random numbers, profiles of a job."""
