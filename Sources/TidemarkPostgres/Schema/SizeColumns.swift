/// What rows of the log take, as `ScopeSize` counts it.
enum SizeColumns {
    /// The columns of a sum over rows: how many they are, and what they take.
    static let sum = "count(*), coalesce(sum(\(bytes)), 0)::bigint"
    /// What a row takes, as `ScopeSize` counts it.
    static let bytes = "coalesce(length(CASE kind WHEN 1 THEN field_versions ELSE payload END), 0)::bigint"
}
