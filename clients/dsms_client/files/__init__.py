"""Files of rows -> batches with the columns of a stream, and an account of the lines that could not
be read."""
