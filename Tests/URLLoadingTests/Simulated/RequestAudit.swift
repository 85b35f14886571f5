/// A server on the simulated network that is driven by the steps of a `SessionLoad`.
protocol SimulatedServer: AnyObject {
    var audit: RequestAudit { get }
    /// Reads, and sends part of the pending output. Called in each step of the simulation.
    func step()
    /// Lets some connections be slow to read, and closes some idle ones.
    func pass()
    /// Makes all connections read at full speed again.
    func readAll()
}

/// Checks the requests that a server receives.
final class RequestAudit {
    var plans: [Int: ServerPlan] = [:]
    /// The number of body bytes of each task.
    var bodySizes: [Int: Int] = [:]
    /// Whether a proxy forwards all requests.
    var isForwarded = false
    private(set) var complaints: [String] = []
    /// The received requests that must not be repeated.
    private var unrepeatable: Set<String> = []

    func complain(_ text: String) { self.complaints.append(text) }

    func check(_ request: SimulatedRequestReader.Request) {
        let foreign = request.cookies.filter { !$0.hasPrefix(request.host) }
        if !foreign.isEmpty { self.complain("\(request.host) got the cookies \(foreign)") }
        if self.plans[request.task] == nil { self.complain("a request of no task") }
        if request.isAbsolute != self.isForwarded { self.complain("the target is absolute: \(request.isAbsolute)") }
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
