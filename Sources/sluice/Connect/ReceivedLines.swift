import CommandLineText

/// What comes, as it is to be shown: a stream in lines where that was asked for.
struct ReceivedLines {
    private let wantsLines: Bool
    private let limit: Int
    private var splitter: LineSplitter

    init(plan: ConnectPlan) {
        self.wantsLines = !plan.speaksWebSocket && (plan.writesLines || plan.terms.wantsOneAnswer)
        self.limit = plan.messageLimit
        self.splitter = LineSplitter(limit: plan.messageLimit)
    }

    mutating func events(_ received: Received) throws(ConnectFailure) -> [ConnectEvent] {
        do throws(LineSplitter.Overflow) {
            switch received {
            case .text(let text): return [.text(text)]
            case .data(let bytes): return [.data(bytes)]
            case .bytes(let bytes):
                return self.wantsLines ? try self.splitter.lines(bytes).map { .line($0) } : [.bytes(bytes)]
            case .end: return try self.splitter.finish().map { [.line($0)] } ?? []
            }
        } catch {
            throw ConnectFailure(
                .outOfOrder, "a line of the peer is longer than \(self.limit) bytes",
                remedy: "leave --lines out to take its bytes as they come")
        }
    }

    func isAnswer(_ event: ConnectEvent) -> Bool {
        switch event {
        case .text, .data, .line: true
        default: false
        }
    }
}
