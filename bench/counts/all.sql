SELECT count(*) FROM counts;
