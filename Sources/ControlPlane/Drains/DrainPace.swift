import ControlAPI
import GatewayCore
import StreamTransport

/// How fast a drain is to go, and when it is to be over.
struct DrainPace: Sendable {
    /// Connections each second, in `DrainTimetable.rates`.
    let rate: Double
    /// Each is told up to so much later.
    let jitter: Duration
    /// From the beginning; `nil` for none.
    let deadline: Duration?

    /// - Throws: `ControlProblem` 422 with the place of a number that cannot be meant.
    init(_ request: BulkRequest) throws(ControlProblem) {
        self.rate = request.ratePerSecond ?? 100
        guard DrainTimetable.rates.contains(self.rate) else {
            throw .invalid("/ratePerSecond", "ratePerSecond is to be from 0.001 to 100000.")
        }
        self.jitter = try ClientOrderReading.time(request.jitterMs, "/jitterMs", in: 0...3_600_000) ?? .zero
        self.deadline = try ClientOrderReading.time(request.deadlineMs, "/deadlineMs", in: 0...86_400_000)
    }

    func timetable(
        for count: Int, from now: MonotonicInstant, using generator: inout some RandomNumberGenerator
    ) -> DrainTimetable {
        DrainTimetable(count: count, rate: self.rate, jitter: self.jitter, began: now, using: &generator)
    }

    /// What a drain of so many would be: how long it takes, and what it does not get done.
    func preview(of count: Int) -> BulkAnswer {
        var generator = SystemRandomNumberGenerator()
        let began = MonotonicInstant(nanoseconds: 0)
        let timetable = self.timetable(for: count, from: began, using: &generator)
        let late = self.deadline.map { timetable.count(from: began.advanced(by: $0), at: began) } ?? 0
        var answer = BulkAnswer(matched: count, told: 0)
        answer.takesMs = Int(began.duration(to: timetable.end(at: began)).clampedNanoseconds / 1_000_000)
        answer.warning = late > 0 ? self.warning(late: late, of: count) : nil
        return answer
    }

    /// - Parameter late: connections whose time comes at the deadline or after it.
    func warning(late: Int, of count: Int) -> String {
        let jitter = self.jitter > .zero ? " with a jitter of \(DurationText(self.jitter))" : ""
        let deadline = self.deadline.map { "\(DurationText($0))" } ?? "none"
        return """
            \(late) of \(count) connections are reset at the deadline of \(deadline) without being told to end: \
            \(self.rateText) a second\(jitter) takes longer. Raise the rate or the deadline.
            """
    }

    private var rateText: String {
        Int(exactly: self.rate).map { "\($0)" } ?? "\(self.rate)"
    }
}
