/// A server on the simulated network that is driven by the steps of a `SessionLoad`.
protocol SimulatedServer: AnyObject {
    var audit: RequestAudit { get }
    /// Reads, and sends some of what is due. Called in each step of the simulation.
    func step()
    /// Lets some connections be slow to read, and closes some idle ones.
    func pass()
    /// No connection is slow any more.
    func readAll()
}

/// What a server expects of the requests that it gets.
final class RequestAudit {
    var plans: [Int: ServerPlan] = [:]
    /// Bytes of the body that each task sends.
    var bodySizes: [Int: Int] = [:]
    private(set) var complaints: [String] = []
    /// Requests that must not be repeated, which were received.
    private var unrepeatable: Set<String> = []

    func complain(_ text: String) { self.complaints.append(text) }

    func check(_ request: SimulatedRequestReader.Request) {
        let foreign = request.cookies.filter { !$0.hasPrefix(request.host) }
        if !foreign.isEmpty { self.complain("\(request.host) got the cookies \(foreign)") }
        if self.plans[request.task] == nil { self.complain("a request of no task") }
        guard request.method == "POST" else { return }
        let key = "\(request.task)/\(request.step) \(request.authorization ?? "")"
        if !self.unrepeatable.insert(key).inserted { self.complain("POST \(key) was repeated") }
    }

    func checkBody(_ body: [UInt8], of request: SimulatedRequestReader.Request?, isComplete: Bool) {
        guard let request, ["POST", "PUT"].contains(request.method) else { return }
        let expected = BodyPattern.request(request.task, self.bodySizes[request.task, default: 0])
        guard isComplete ? body != expected : !expected.starts(with: body) else { return }
        self.complain("task \(request.task): wrong request body, \(body.count) bytes of \(expected.count)")
    }
}
