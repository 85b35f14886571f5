/// Where a stream of events or pieces ends by itself: without bounds it goes on for as long as its client stays.
struct StreamBounds: Sendable {
    static let parameters: Set<String> = ["limit", "durationMs"]
    static let largestLimit = 1_000_000
    static let longest = Duration.seconds(86_400)

    private var limit: Int?
    private var deadline: ContinuousClock.Instant?

    /// None.
    init() {}

    /// - Throws: `ControlProblem` for a limit that is not 1 to 1 000 000, or a duration above a day.
    init(_ query: Query) throws(ControlProblem) {
        self.limit = try query.integer("limit", in: 1...Self.largestLimit)
        guard let duration = try query.milliseconds("durationMs") else { return }
        guard duration <= Self.longest else {
            throw ControlProblem(400, "invalid-parameter", "durationMs is to be at most 86400000.")
                .at(parameter: "durationMs")
        }
        self.deadline = ContinuousClock.now.advanced(by: duration)
    }

    func isReached(_ count: Int) -> Bool {
        self.room(after: count) == 0 || self.timeLeft == .zero
    }

    /// How many more may follow.
    func room(after count: Int) -> Int {
        self.limit.map { max(0, $0 - count) } ?? .max
    }

    /// `nil` without a deadline.
    var timeLeft: Duration? {
        self.deadline.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
    }
}
