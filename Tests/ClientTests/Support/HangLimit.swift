import Testing

extension Trait where Self == TimeLimitTrait {
    /// The time after which a test counts as hung. All tests of the client run at once and share the machine, so that
    /// each may take as long as all of them, some five minutes on two processors.
    static var hangLimit: Self { .timeLimit(.minutes(15)) }
}
