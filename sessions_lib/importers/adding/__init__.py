"""How conversations that were read are added to the sessions: new, grown or unchanged, and nothing overwritten."""
