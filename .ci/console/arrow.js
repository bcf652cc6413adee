// Arrow as it is read: a stream of record batches, and the types of their columns.
export { RecordBatchReader, Type } from "apache-arrow";
