"""What each note becomes on the tape: an entry of `MAKERS` gives the events of one kind of note."""
