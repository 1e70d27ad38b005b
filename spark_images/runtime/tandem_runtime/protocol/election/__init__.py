"""Who leads: the register, succession, rebuild of the header log, discovery of the lead."""
