import TestSupport

/// The behaviour of a simulated web server for the requests of one task.
struct ServerPlan {
    /// A response or challenge before the final response.
    enum PrecedingResponse: Equatable {
        case none
        case redirect(Int, toOtherHost: Bool)
        case basic
        case digest

        var isSeeOther: Bool {
            if case .redirect(303, _) = self { true } else { false }
        }
    }

    enum Framing: CaseIterable {
        case length
        case chunked
        case untilClose
    }

    /// How the final response ends.
    enum ResponseEnd: Equatable {
        case whole
        /// Complete and kept alive; then the idle connection is closed without an announcement.
        case wholeThenClosed
        case wholeThenGarbage
        case cutOff(byReset: Bool, at: Int)
        case closedBeforeHead
        case malformedHead
        case silent

    }

    var detour = PrecedingResponse.none
    var framing = Framing.length
    var ending = ResponseEnd.whole
    var size = 0
    var sendsInformational = false
    /// The final response is sent before the body of the request has been read.
    var answersEarly = false
    /// The longest piece of a response that is sent at once.
    var pieceSize = 4096

    /// - Parameter isMild: no response is spoiled.
    init(isMild: Bool, largest: Int, using chance: inout SeededGenerator) {
        self.size = Int.random(in: 0...3, using: &chance) == 0 ? 0 : Int.random(in: 1...largest, using: &chance)
        self.framing = Framing.allCases.randomElement(using: &chance) ?? .length
        self.sendsInformational = Int.random(in: 0..<4, using: &chance) == 0
        self.pieceSize = [1, 100, 4096, 65_536].randomElement(using: &chance) ?? 4096
        if self.pieceSize == 1 { self.size = min(self.size, 300) }
        switch Int.random(in: 0..<8, using: &chance) {
        case 0:
            let status = [301, 302, 303, 307, 308].randomElement(using: &chance) ?? 302
            self.detour = .redirect(status, toOtherHost: Bool.random(using: &chance))
        case 1: self.detour = .basic
        case 2: self.detour = .digest
        default: break
        }
        self.drawEnding(isMild: isMild, using: &chance)
    }

    private mutating func drawEnding(isMild: Bool, using chance: inout SeededGenerator) {
        if self.framing != .untilClose, Int.random(in: 0..<5, using: &chance) == 0 { self.ending = .wholeThenClosed }
        guard !isMild else { return }
        self.answersEarly = Int.random(in: 0..<8, using: &chance) == 0
        let cut = Int.random(in: 0...(self.size + 40), using: &chance)
        switch Int.random(in: 0..<16, using: &chance) {
        case 0 where self.framing != .untilClose: self.ending = .wholeThenGarbage
        // There the end of the connection ends the content.
        case 1: self.ending = .cutOff(byReset: self.framing == .untilClose, at: cut)
        case 2: self.ending = .cutOff(byReset: true, at: cut)
        case 3: self.ending = .closedBeforeHead
        case 4: self.ending = .malformedHead
        case 5: self.ending = .silent
        default: break
        }
    }
}

/// The response to one request of a task: a redirect or a challenge before the final one.
struct PlannedResponse {
    let status: Int
    let fields: [(name: String, value: String)]
    let content: [UInt8]
    let ending: ServerPlan.ResponseEnd
    var isFinal: Bool { self.status == 200 }

    /// - Parameter port: of the server.
    init(to request: SimulatedRequestReader.Request, _ plan: ServerPlan, port: UInt16) {
        let (status, name, value) =
            Self.detour(request, plan, port) ?? (200, "set-cookie", "\(request.host)\(request.task)=1")
        self.status = status
        self.fields = [("content-type", "application/octet-stream"), (name, value)]
        self.content = BodyPattern.response(request.task, status: status, plan)
        self.ending = status == 200 ? plan.ending : .whole
    }

    private static func detour(
        _ request: SimulatedRequestReader.Request, _ plan: ServerPlan, _ port: UInt16
    ) -> (Int, String, String)? {
        switch plan.detour {
        case .redirect(let status, let toOtherHost) where request.step == 0:
            (status, "location", "http://\(toOtherHost ? "two" : "one").test:\(port)/\(request.task)/1")
        case .basic where request.authorization == nil: (401, "www-authenticate", "Basic realm=\"r\"")
        case .digest where request.authorization == nil:
            (401, "www-authenticate", "Digest realm=\"r\", nonce=\"n1\", qop=\"auth\"")
        case .none, .redirect, .basic, .digest: nil
        }
    }
}

/// Bytes that identify their task, their position and the body that they belong to.
enum BodyPattern {
    static func request(_ task: Int, _ count: Int) -> [UInt8] { self.bytes(task &* 3, count) }

    /// The content of a response.
    static func response(_ task: Int, status: Int, _ plan: ServerPlan) -> [UInt8] {
        self.bytes(task &* 3 &+ status, status == 200 ? plan.size : 50)
    }

    private static func bytes(_ seed: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: seed &* 151 &+ $0 &* 7 &+ ($0 >> 8)) }
    }
}
