import Foundation
import SimulatedNetwork
import StreamTransport
import TestSupport
import URLLoading

/// One seeded run: a session with mixed tasks against a server on the simulated network, with every kind of fault.
///
/// The session's loop, its delegate queue and the server run on the test's thread, so the same seed gives the same run.
/// Bodies that are streams or files, and downloads, are left out: they use threads of their own, in real time.
///
/// Every fourth seed uses HTTP/2 instead of HTTP/1.1. Of five seeds three use a proxy, each in its own way.
///
/// Every third seed is mild: reads are short, writes partial and delays random, but nothing is lost; then every task
/// that is not cancelled must succeed.
final class SessionLoad {
    /// More than ten times the steps of the longest run.
    private static let stepLimit = 3_000_000
    static let requestTimeout: TimeInterval = 30

    let network: SimulatedNetwork
    let loop: Loop
    let isMild: Bool
    let usesHTTP2: Bool
    let queue = ManualQueue()
    private let process: SimulatedProcess
    private let host: ScriptedHost
    private let server: any SimulatedServer
    let route: SimulatedRoute
    let proxy: SimulatedProxy?
    private let port: UInt16
    private let delegate = SimulatedDelegate()
    private(set) var session: URLSession?
    private var arriving: [SimulatedTask] = []
    /// The started tasks.
    private(set) var tasks: [SimulatedTask] = []
    private(set) var complaints: [String] = []
    private var chance: SeededGenerator
    private var isQueueHeld = false
    /// The pass in which the session is invalidated and its tasks are cancelled; `nil` means after the last task.
    private let invalidatesIn: Int?
    private var passes = 0
    private var isInvalidated = false

    init(seed: UInt64) throws {
        self.isMild = seed % 3 == 0
        self.usesHTTP2 = seed % 4 == 0
        // Listeners are opened before the network loses anything.
        self.network = SimulatedNetwork(seed: seed, traceLength: 120)
        self.network.stepLimit = Self.stepLimit
        var chance = SeededGenerator(seed: seed)
        let system = self.network.makeSystem()
        self.process = system.process
        let loop = Loop(system: system)
        system.drive { [weak loop] in loop?.turn() }
        self.loop = loop
        let hostSystem = self.network.makeSystem()
        let host = ScriptedHost(on: hostSystem)
        hostSystem.drive { [weak host] in host?.turn() }
        self.host = host
        let address = SocketAddress.ipv4(address: 0x0A01_0001, port: 0)
        let listener = try host.listen(at: address)
        self.port = listener.address.port ?? 0
        let script = SeededGenerator(seed: chance.next())
        self.server =
            if self.usesHTTP2 {
                SimulatedHTTP2Server(listener, using: script)
            } else {
                SimulatedWebServer(listener, allowsPipelining: seed % 3 == 2, using: script)
            }
        self.route = Self.route(seed, usesHTTP2: self.usesHTTP2)
        self.server.audit.isForwarded = self.route == .forwarding
        self.proxy =
            self.route == .direct
            ? nil
            : try SimulatedProxy(self.route, asksForPassword: seed % 2 == 0, to: listener.address, on: host)
        self.network.names = ["one.test": .addresses([address]), "two.test": .addresses([address])]
        self.invalidatesIn = seed % 7 == 1 ? Int.random(in: 1...40, using: &chance) : nil
        self.network.faults = .session(isMild: self.isMild, using: &chance)
        let configuration = Self.configuration(using: &chance)
        configuration.assumesHTTP2 = self.usesHTTP2
        configuration.httpShouldUsePipelining = seed % 3 == 2
        configuration.loop = loop
        self.proxy?.configure(configuration)
        self.session = URLSession(configuration: configuration, delegate: self.delegate, delegateQueue: self.queue)
        self.chance = chance
        self.makeTasks()
    }

    private static func route(_ seed: UInt64, usesHTTP2: Bool) -> SimulatedRoute {
        switch seed % 5 {
        // HTTP/2 is not forwarded.
        case 2: usesHTTP2 ? .tunnel : .forwarding
        case 3: .tunnel
        case 4: .socks
        default: .direct
        }
    }

    private static func configuration(using chance: inout SeededGenerator) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        configuration.httpMaximumConnectionsPerHost = Int.random(in: 1...4, using: &chance)
        configuration.timeoutIntervalForRequest = Self.requestTimeout
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.httpCookieAcceptPolicy = .always
        return configuration
    }

    private func makeTasks() {
        // Where bytes travel one by one, a few thousand steps are enough.
        let largest = self.network.faults.segmentSize.upperBound < 16 ? 300 : 12_000
        for number in 0..<Int.random(in: 4...12, using: &self.chance) {
            let task = SimulatedTask(
                number, isMild: self.isMild, usesHTTP2: self.usesHTTP2, largest: largest, using: &self.chance)
            self.arriving.append(task)
            self.server.audit.plans[number] = task.plan
            self.server.audit.bodySizes[number] = task.bodySize
        }
    }

    // MARK: The load

    func run() {
        for task in self.arriving {
            guard !self.isInvalidated, let session else { break }
            self.tasks.append(task)
            task.start(session, port: self.port)
            if let identifier = task.task?.taskIdentifier { self.delegate.tasks[identifier] = task }
            self.pass(.milliseconds(Int.random(in: 0...30, using: &self.chance)))
        }
        for _ in 0..<30 { self.pass(.milliseconds(Int.random(in: 1...200, using: &self.chance))) }
        self.isQueueHeld = false
        self.server.readAll()
        for task in self.tasks { task.resumeIfSuspended() }
        self.check(self.advance(atMost: .seconds(900)) { self.tasks.allSatisfy(\.isOver) })
        self.session?.finishTasksAndInvalidate()
    }

    /// Advances the clock to the next step of the program, the delegate or the server.
    private func pass(_ duration: Duration) {
        self.passes += 1
        self.delegate.answerLate()
        for task in self.tasks { task.pass() }
        self.server.pass()
        self.isQueueHeld = Int.random(in: 0..<8, using: &self.chance) == 0
        if Int.random(in: 0..<60, using: &self.chance) == 0 { self.session?.flush {} }
        if self.passes == self.invalidatesIn {
            self.isInvalidated = true
            for task in self.tasks { task.cancelledWithSession() }
            self.session?.invalidateAndCancel()
        }
        self.check(self.advance(atMost: duration) { false })
    }

    private func advance(atMost limit: Duration, until condition: () -> Bool) -> RunOutcome {
        self.network.run(
            until: {
                self.server.step()
                self.proxy?.step()
                if !self.isQueueHeld { self.queue.runOperations() }
                if limit > .seconds(1) { self.delegate.answerLate() }
                return condition()
            }, atMost: limit)
    }

    private func check(_ outcome: RunOutcome) {
        switch outcome {
        case .conditionMet, .idle, .timeOver: break
        case .spinning, .stepsUsedUp: self.complaints.append("time does not pass: \(outcome)")
        }
    }

    // MARK: Judging

    func conclude() {
        for task in self.tasks { task.judge(isMild: self.isMild) }
        self.complaints += self.tasks.flatMap(\.complaints) + self.server.audit.complaints + self.delegate.complaints
        self.complaints += self.proxy?.complaints ?? []
        self.check(self.advance(atMost: .seconds(300)) { false })
        if self.delegate.invalidations != 1 {
            self.complaints.append("the session became invalid \(self.delegate.invalidations) times")
        }
        let isFree = WeakReference(self.session)
        self.session = nil
        for task in self.tasks { task.task = nil }
        self.check(self.advance(atMost: .seconds(300)) { false })
        if isFree.object != nil { self.complaints.append("the session is still referenced") }
        let remains = [
            "descriptors": self.process.openDescriptors, "watches": self.loop.watchedCount,
            "timers": self.loop.timerCount,
        ]
        self.complaints += remains.filter { $0.value != 0 }.map { "\($0.value) \($0.key) left" }
        self.complaints += self.network.misuses
        self.host.close()
    }

    /// The results of all tasks, to compare runs.
    var endings: [String] {
        self.tasks.map { task in
            let error = (task.error as? URLError).map { "\($0.code.rawValue)" } ?? "success"
            return "\(task.method) \(task.number) \(task.events) \(task.data.count) \(error) \(task.plan)"
        }
    }
}

private struct WeakReference {
    weak var object: AnyObject?

    init(_ object: AnyObject?) { self.object = object }
}

extension FaultPlan {
    /// - Parameter isMild: nothing is lost.
    fileprivate static func session(isMild: Bool, using chance: inout SeededGenerator) -> FaultPlan {
        var plan = FaultPlan.rough
        switch Int.random(in: 0..<4, using: &chance) {
        case 0: plan.segmentSize = 1...1
        case 1: plan.segmentSize = 1...200
        default: break
        }
        plan.reset = isMild ? 0 : 0.1
        plan.resetAfter = 0...8192
        guard isMild else { return plan }
        plan.refusedConnect = 0
        plan.hangingConnect = 0
        plan.unreachableConnect = 0
        plan.exhaustion = 0
        plan.lookupFailure = 0
        return plan
    }
}
