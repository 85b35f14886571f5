import ByteKernels
import DequeModule

/// What NetworkManager says about the cost of networks.
package struct MeteredNetworks: Equatable, Sendable {
    /// Names of the network interfaces whose traffic is paid for or limited, or is guessed to be.
    package var interfaces: Set<String> = []
    /// Whether that is so for the interface that most of the machine's traffic takes.
    package var isMachineMetered = false

    package init() {}
}

/// Asks NetworkManager over a bus which devices are metered, and notices that this may have changed.
///
/// - Source: NetworkManager's D-Bus interface: property `Metered` of `org.freedesktop.NetworkManager` and of its
///   devices, where 1 means yes and 3 a guessed yes; `Interface` and, of a modem, `IpInterface`.
package struct MeteredDevices: Sendable {
    package enum Action: Equatable, Sendable {
        case send([UInt8])
        /// A reading is complete.
        case publish(MeteredNetworks)
        /// Something may have changed: `readAgain` soon. Not repeated before that.
        case readLater
    }

    private enum Question: Equatable, Sendable {
        case hello
        case machine
        case devices
        case metered(path: String)
        case name(path: String, property: String)
    }

    /// Most devices that are asked about.
    package static let deviceLimit = 512
    /// Most questions without an answer; a system bus often permits 128.
    static let questionLimit = 32

    private static let bus = "org.freedesktop.DBus"
    private static let networkManager = "org.freedesktop.NetworkManager"
    private static let device = "org.freedesktop.NetworkManager.Device"
    private static let properties = "org.freedesktop.DBus.Properties"
    private static let rootPath = "/org/freedesktop/NetworkManager"
    private static let rules = [
        "type='signal',sender='\(networkManager)',interface='\(properties)',arg0='\(device)'",
        "type='signal',sender='\(networkManager)',interface='\(networkManager)'",
        "type='signal',sender='\(bus)',member='NameOwnerChanged',arg0='\(networkManager)'",
    ]

    private var conversation = BusConversation()
    private var actions: Deque<Action> = [.send(BusConversation.greeting)]
    private var lastSerial: UInt32 = 0
    private var asked: [UInt32: Question] = [:]
    private var waiting: Deque<Question> = []
    private var found = MeteredNetworks()
    private var isReading = true
    /// A change was noticed and has not been read.
    private var isOutdated = false

    package init() {}

    package mutating func bytesReceived(_ bytes: RawSpan) { self.conversation.bytesReceived(bytes) }

    /// - Returns: `nil` until more bytes are received, or `readAgain` is called.
    package mutating func nextAction() throws(BusViolation) -> Action? {
        while true {
            if let action = self.actions.popFirst() { return action }
            switch try self.conversation.nextEvent() {
            case nil: return nil
            case .send(let bytes): return .send(bytes)
            case .opened: self.opened()
            case .message(let message): try self.received(message)
            }
        }
    }

    /// Begins another reading, unless one is in progress.
    package mutating func readAgain() {
        guard !self.isReading else { return }
        (self.isReading, self.isOutdated, self.found) = (true, false, MeteredNetworks())
        self.waiting = [.machine, .devices]
        self.askNext()
    }

    private mutating func opened() {
        self.actions.append(.send(Array("BEGIN\r\n".utf8)))
        self.waiting = [.hello]
        self.askNext()
    }

    // MARK: Messages

    private mutating func received(_ message: BusMessage) throws(BusViolation) {
        switch message.kind {
        case .reply, .error:
            guard let serial = message.answers, let question = self.asked.removeValue(forKey: serial) else { return }
            try self.answered(question, message)
            self.askNext()
            if self.asked.isEmpty { self.completeReading() }
        case .signal:
            if self.concernsDevices(message) { self.notice() }
        case .call, .other: break
        }
    }

    private func concernsDevices(_ signal: BusMessage) -> Bool {
        switch signal.interface {
        case Self.properties, Self.networkManager: true
        case Self.bus: signal.member == "NameOwnerChanged"
        default: false
        }
    }

    private mutating func notice() {
        if !self.isOutdated, !self.isReading { self.actions.append(.readLater) }
        self.isOutdated = true
    }

    private mutating func answered(_ question: Question, _ message: BusMessage) throws(BusViolation) {
        guard message.kind == .reply else {
            // Anything else may be unknown: there is no NetworkManager, or the device was removed.
            if question == .hello { throw BusViolation.refused }
            return
        }
        switch question {
        case .hello: self.registered()
        case .machine: self.found.isMachineMetered = Self.isMetered(try message.number())
        case .devices:
            for path in try message.objectPaths(limit: Self.deviceLimit) { self.waiting.append(.metered(path: path)) }
        case .metered(let path):
            guard Self.isMetered(try message.number()) else { return }
            for property in ["Interface", "IpInterface"] { self.waiting.append(.name(path: path, property: property)) }
        case .name:
            let name = try message.text()
            if !name.isEmpty { self.found.interfaces.insert(name) }
        }
    }

    /// NM_METERED_YES and NM_METERED_GUESS_YES.
    private static func isMetered(_ value: UInt32) -> Bool { value == 1 || value == 3 }

    /// The bus knows the client. Changes are asked for first, so that none is missed.
    private mutating func registered() {
        for rule in Self.rules {
            var call = Self.busCall("AddMatch")
            (call.arguments, call.wantsReply) = ([rule], false)
            self.send(call)
        }
        self.waiting = [.machine, .devices]
    }

    private mutating func completeReading() {
        guard self.isReading else { return }
        self.isReading = false
        self.actions.append(.publish(self.found))
        if self.isOutdated { self.actions.append(.readLater) }
    }

    // MARK: Calls

    private mutating func askNext() {
        while self.asked.count < Self.questionLimit, let question = self.waiting.popFirst() {
            self.asked[self.send(Self.call(question))] = question
        }
    }

    @discardableResult
    private mutating func send(_ call: BusCall) -> UInt32 {
        // 0 is not a serial number.
        self.lastSerial = self.lastSerial == .max ? 1 : self.lastSerial + 1
        self.actions.append(.send(call.encoded(serial: self.lastSerial)))
        return self.lastSerial
    }

    private static func call(_ question: Question) -> BusCall {
        switch question {
        case .hello: self.busCall("Hello")
        case .machine: self.property("Metered", of: self.networkManager, at: self.rootPath)
        case .devices:
            BusCall(
                destination: self.networkManager, path: self.rootPath, interface: self.networkManager,
                member: "GetDevices")
        case .metered(let path): self.property("Metered", of: self.device, at: path)
        case .name(let path, let property): self.property(property, of: self.device, at: path)
        }
    }

    private static func busCall(_ member: String) -> BusCall {
        BusCall(destination: self.bus, path: "/org/freedesktop/DBus", interface: self.bus, member: member)
    }

    private static func property(_ name: String, of interface: String, at path: String) -> BusCall {
        BusCall(
            destination: self.networkManager, path: path, interface: self.properties, member: "Get",
            arguments: [interface, name])
    }
}
