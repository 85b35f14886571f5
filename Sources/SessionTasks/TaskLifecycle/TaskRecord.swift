import StreamTransport
import Synchronization
import TLSEngine

/// Properties common to all tasks, readable from any thread at any time. Only the task's loop writes the counters, so
/// they cost a plain store.
package final class TaskRecord: Sendable {
    /// Properties that change rarely.
    package struct Details: Sendable {
        /// Properties that most connections never have.
        private struct Rare: Sendable {
            var label: String?
            var tls: TLSMetadata?
            var failure: TaskFailure?
            var stallBegan: MonotonicInstant?
            var stalled = Duration.zero
        }

        package var localAddress: SocketAddress?
        package var peerAddress: SocketAddress?
        private var rare: Indirect<Rare>?

        package var label: String? {
            get { self.rare?.value.label }
            set { if newValue != self.label { self.changeRare { $0.label = newValue } } }
        }

        package var tls: TLSMetadata? {
            get { self.rare?.value.tls }
            set { if newValue != self.tls { self.changeRare { $0.tls = newValue } } }
        }

        package var failure: TaskFailure? {
            get { self.rare?.value.failure }
            set { if newValue != self.failure { self.changeRare { $0.failure = newValue } } }
        }

        fileprivate var stallBegan: MonotonicInstant? {
            get { self.rare?.value.stallBegan }
            set { if newValue != self.stallBegan { self.changeRare { $0.stallBegan = newValue } } }
        }

        package var stalled: Duration {
            get { self.rare?.value.stalled ?? .zero }
            set { if newValue != self.stalled { self.changeRare { $0.stalled = newValue } } }
        }

        /// How long the peer was not read in all, up to `now`.
        package func stalled(at now: MonotonicInstant) -> Duration {
            guard let rare = self.rare?.value else { return .zero }
            return rare.stalled + (rare.stallBegan.map { max(.zero, $0.duration(to: now)) } ?? .zero)
        }

        private mutating func changeRare(_ change: (inout Rare) -> Void) {
            var rare = self.rare?.value ?? Rare()
            change(&rare)
            self.rare = .value(rare)
        }
    }

    private static let lastIdentifier = Atomic<UInt64>(0)

    /// Unique in the process, from 1 up.
    package let identifier: UInt64
    private let stateNumber: Atomic<UInt8>
    private let connected = Atomic<Bool>(false)
    private let stalled = Atomic<Bool>(false)
    private let priorityBits = Atomic<UInt32>(Float(0.5).bitPattern)
    /// Frames beside the last of each message: rarely many, so half the room is enough.
    private let moreFramesIn = Atomic<UInt32>(0)
    private let moreFramesOut = Atomic<UInt32>(0)
    private let received = Atomic<UInt64>(0)
    private let sent = Atomic<UInt64>(0)
    private let messagesIn = Atomic<UInt64>(0)
    private let messagesOut = Atomic<UInt64>(0)
    private let opened = Atomic<Int64>(0)
    private let active = Atomic<Int64>(0)
    private let details = Mutex(Details())

    package init(state: TaskState) {
        self.identifier = Self.lastIdentifier.wrappingAdd(1, ordering: .relaxed).newValue
        self.stateNumber = Atomic(state.rawValue)
    }

    /// Cancelling shows at once, from any thread; from then on the state only advances to its end.
    package var state: TaskState {
        get { TaskState(rawValue: self.stateNumber.load(ordering: .relaxed)) ?? .completed }
        set {
            let (new, canceling) = (newValue.rawValue, TaskState.canceling.rawValue)
            var old = self.stateNumber.load(ordering: .relaxed)
            while old < canceling || old < new {
                let (exchanged, found) = self.stateNumber.weakCompareExchange(
                    expected: old, desired: new, ordering: .relaxed)
                guard !exchanged else { return }
                old = found
            }
        }
    }

    /// 0 to 1; a hint.
    package var priority: Float {
        get { Float(bitPattern: self.priorityBits.load(ordering: .relaxed)) }
        set { self.priorityBits.store(min(1, max(0, newValue)).bitPattern, ordering: .relaxed) }
    }

    /// Payload bytes: of a stream, all; of a WebSocket, those of data messages.
    package var bytesReceived: UInt64 { self.received.load(ordering: .relaxed) }
    package var bytesSent: UInt64 { self.sent.load(ordering: .relaxed) }
    package var messagesReceived: UInt64 { self.messagesIn.load(ordering: .relaxed) }
    package var messagesSent: UInt64 { self.messagesOut.load(ordering: .relaxed) }
    /// WebSocket frames of every kind; 0 on a stream. Wrong by 2^32 when so many came that ended no message.
    package var framesReceived: UInt64 { self.messagesReceived &+ UInt64(self.moreFramesIn.load(ordering: .relaxed)) }
    package var framesSent: UInt64 { self.messagesSent &+ UInt64(self.moreFramesOut.load(ordering: .relaxed)) }

    /// Whether reading is paused because the received bytes cannot be passed on.
    package var isStalled: Bool { self.stalled.load(ordering: .relaxed) }

    /// Whether the task was ever connected to the peer, even if TLS or the opening handshake did not complete.
    package var isConnected: Bool {
        get { self.connected.load(ordering: .relaxed) }
        set { self.connected.store(newValue, ordering: .relaxed) }
    }

    /// When the connection was ready for payload; `nil` before.
    package var openedAt: MonotonicInstant? {
        let nanoseconds = self.opened.load(ordering: .relaxed)
        return nanoseconds == 0 ? nil : MonotonicInstant(nanoseconds: nanoseconds)
    }

    /// When payload last moved, either way.
    package var lastActivityAt: MonotonicInstant? {
        let nanoseconds = self.active.load(ordering: .relaxed)
        return nanoseconds == 0 ? nil : MonotonicInstant(nanoseconds: nanoseconds)
    }

    package func countReceived(bytes: Int, messages: Int = 0, at now: MonotonicInstant) {
        self.received.store(self.received.load(ordering: .relaxed) &+ UInt64(bytes), ordering: .relaxed)
        if messages > 0 {
            self.messagesIn.store(self.messagesIn.load(ordering: .relaxed) &+ UInt64(messages), ordering: .relaxed)
        }
        self.active.store(now.nanoseconds, ordering: .relaxed)
    }

    package func countSent(bytes: Int, messages: Int = 0, at now: MonotonicInstant) {
        self.sent.store(self.sent.load(ordering: .relaxed) &+ UInt64(bytes), ordering: .relaxed)
        if messages > 0 {
            self.messagesOut.store(self.messagesOut.load(ordering: .relaxed) &+ UInt64(messages), ordering: .relaxed)
        }
        self.active.store(now.nanoseconds, ordering: .relaxed)
    }

    /// Frames that ended no message: control frames, and all but a message's last.
    package func countMoreFramesReceived(_ count: Int = 1) {
        self.moreFramesIn.store(
            self.moreFramesIn.load(ordering: .relaxed) &+ UInt32(truncatingIfNeeded: count), ordering: .relaxed)
    }

    package func countMoreFramesSent(_ count: Int = 1) {
        self.moreFramesOut.store(
            self.moreFramesOut.load(ordering: .relaxed) &+ UInt32(truncatingIfNeeded: count), ordering: .relaxed)
    }

    /// The peer is not read any more, until `stallEnded`.
    package func stallBegins(at now: MonotonicInstant) {
        guard !self.isStalled else { return }
        self.stalled.store(true, ordering: .relaxed)
        self.update { $0.stallBegan = now }
    }

    package func stallEnded(at now: MonotonicInstant) {
        guard self.isStalled else { return }
        self.stalled.store(false, ordering: .relaxed)
        self.update { details in
            details.stalled += details.stallBegan?.duration(to: now) ?? .zero
            details.stallBegan = nil
        }
    }

    /// The task has a connection, over `transport`.
    func connected(_ transport: any Transport) {
        self.isConnected = true
        let tls = (transport as? SecureTransport)?.metadata
        self.update {
            $0.localAddress = transport.localAddress
            $0.peerAddress = transport.peerAddress
            $0.tls = tls
        }
    }

    package func markOpened(at now: MonotonicInstant) {
        self.opened.store(now.nanoseconds, ordering: .relaxed)
        self.active.store(now.nanoseconds, ordering: .relaxed)
    }

    /// Current values of the properties that change rarely.
    package var currentDetails: Details { self.details.withLock { $0 } }

    package func read<R: Sendable>(_ body: (Details) -> R) -> R {
        self.details.withLock { body($0) }
    }

    package func update(_ body: (inout Details) -> Void) {
        self.details.withLock { body(&$0) }
    }
}

/// Phase of a task's connection, as shown to operators.
package enum TaskStage: String, Sendable, Hashable, CaseIterable {
    /// Being connected, secured or upgraded.
    case opening
    case open
    /// One of the two ends has begun to end it.
    case closing
    case closed
}

/// State of a task, in the order of the URL loading system's `URLSessionTask.State`.
public enum TaskState: UInt8, Sendable, Hashable {
    /// Made, or suspended: nothing is read, nothing is begun, no timer runs.
    case suspended
    case running
    /// Cancellation is in progress; waiting operations are being completed.
    case canceling
    /// Over. `error` says how, if not well.
    case completed
}
