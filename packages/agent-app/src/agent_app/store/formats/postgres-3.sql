-- Format 3: the tables are as they were; SQLite, which has the same formats, keeps words in another way.

UPDATE format SET number = 3;
