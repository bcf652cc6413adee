"""Who somebody is and what they may do: logins, tokens, passwords, rights, users of Kafka."""
