import GatewayCore
import Testing

@Suite("A requested connection until it is open")
struct PendingOpeningTests {
    private enum Event: CaseIterable {
        case began, completed, cancelled
    }

    /// The state that follows, and whether the connection must be abandoned.
    @Test(
        arguments: [
            ("beginning", .began, "opening(7)", false), ("beginning", .completed, "over", false),
            ("beginning", .cancelled, "cancelled", false),
            ("opening(7)", .began, "opening(7)", false), ("opening(7)", .completed, "over", false),
            ("opening(7)", .cancelled, "over", true),
            ("cancelled", .began, "over", true), ("cancelled", .completed, "over", false),
            ("cancelled", .cancelled, "cancelled", false),
            ("over", .began, "over", false), ("over", .completed, "over", false), ("over", .cancelled, "over", false),
        ] as [(String, Event, String, Bool)])
    private func everyEventIsAnsweredInEveryPhase(_ before: String, _ event: Event, _ after: String, _ abandons: Bool) {
        for start in [PendingOpening<Int>.beginning, .opening(7), .cancelled, .over] where "\(start)" == before {
            var opening = start
            let abandoned: Int? =
                switch event {
                case .began: opening.began(7)
                case .completed: Self.complete(&opening)
                case .cancelled: opening.cancelled()
                }
            #expect("\(opening)" == after)
            #expect(abandoned == (abandons ? 7 : nil))
        }
    }

    private static func complete(_ opening: inout PendingOpening<Int>) -> Int? {
        opening.completed()
        return nil
    }
}
