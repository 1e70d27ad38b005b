"""What a process needs of the world around it: the register, the intent, peers, what is gone."""
