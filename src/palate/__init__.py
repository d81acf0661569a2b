"""Does your reward model know whose reward it is giving?"""
