-- Format 6: what models used is found without reading the rest of a log. The bytes are {"type":"usage",

CREATE INDEX events_of_usage ON events (session, seq)
    WHERE substr(body, 1, 16) = x'7b2274797065223a227573616765222c';
