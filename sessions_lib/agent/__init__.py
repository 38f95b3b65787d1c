"""Who answers: the loop, runs in the background, tools, providers, and the offline demo's world and model."""
