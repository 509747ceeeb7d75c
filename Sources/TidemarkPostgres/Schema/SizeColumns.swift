/// The size of the log's rows, as `ScopeSize` counts it.
enum SizeColumns {
    /// The columns of a sum over rows: how many they are, and what they take.
    static let sum = "count(*), coalesce(sum(\(bytes)), 0)::bigint"
    /// The bytes of a row, as `ScopeSize` counts them.
    static let bytes = "coalesce(length(CASE kind WHEN 1 THEN field_versions ELSE payload END), 0)::bigint"
}
