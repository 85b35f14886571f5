import Foundation
import Synchronization

/// A delegate by the protocols that it has, looked up once.
final class DelegateProxy: Sendable {
    let delegate: any URLSessionDelegate
    let task: (any URLSessionTaskDelegate)?
    let data: (any URLSessionDataDelegate)?
    let download: (any URLSessionDownloadDelegate)?
    let stream: (any URLSessionStreamDelegate)?
    let webSocket: (any URLSessionWebSocketDelegate)?
    let traits: DelegateTraits

    init(_ delegate: any URLSessionDelegate) {
        self.delegate = delegate
        self.task = delegate as? any URLSessionTaskDelegate
        self.data = self.task == nil ? nil : delegate as? any URLSessionDataDelegate
        self.download = self.task == nil ? nil : delegate as? any URLSessionDownloadDelegate
        self.stream = self.task == nil ? nil : delegate as? any URLSessionStreamDelegate
        self.webSocket = self.task == nil ? nil : delegate as? any URLSessionWebSocketDelegate
        self.traits = DelegateTraits.of(delegate)
    }

    /// Whether the method may be there: `false` once it is known to be left out, or where its protocol is missing.
    func mayImplement(_ method: DelegateMethod) -> Bool {
        self.conforms(method) && self.traits.implements(method) ?? true
    }

    private func conforms(_ method: DelegateMethod) -> Bool {
        switch method {
        case .becameInvalid, .sessionChallenge, .sessionChallengeAsync: true
        case .createdTask, .waitsForConnectivity, .redirection, .redirectionAsync, .taskChallenge, .taskChallengeAsync,
            .newBodyStream, .newBodyStreamAsync, .sentBody, .informationalResponse, .metrics, .completion:
            self.task != nil
        case .response, .responseAsync, .becameDownload, .becameStream, .data, .cacheProposal, .cacheProposalAsync:
            self.data != nil
        case .wroteData, .resumedAtOffset, .finishedDownload: self.download != nil
        case .readClosed, .writeClosed, .betterRoute, .capturedStreams: self.stream != nil
        case .webSocketOpened, .webSocketClosed: self.webSocket != nil
        }
    }

    /// Calls a method that only tells.
    /// - Returns: whether the delegate has it.
    func notify(_ method: DelegateMethod, _ body: () -> Void) -> Bool {
        switch self.traits.implements(method) {
        case true?:
            body()
            return true
        case false?: return false
        case nil:
            let answers = MissingMethodFlag.watch(body)
            self.traits.record(method, answers: answers)
            return answers
        }
    }

    /// Calls an asynchronous method.
    /// - Returns: `nil` where the delegate does not have it.
    func ask<Answer>(_ method: DelegateMethod, _ body: () async -> Answer) async -> Answer? {
        guard self.mayImplement(method) else { return nil }
        let answer = await MissingMethodFlag.watch(body)
        self.traits.record(method, answers: answer != nil)
        return answer
    }
}

/// The messages that a delegate may leave out: whether it did decides who is asked next.
enum DelegateMethod: Int, CaseIterable {
    case becameInvalid
    case sessionChallenge
    case sessionChallengeAsync
    case createdTask
    case waitsForConnectivity
    case redirection
    case redirectionAsync
    case taskChallenge
    case taskChallengeAsync
    case newBodyStream
    case newBodyStreamAsync
    case sentBody
    case informationalResponse
    case metrics
    case completion
    case response
    case responseAsync
    case becameDownload
    case becameStream
    case data
    case cacheProposal
    case cacheProposalAsync
    case wroteData
    case resumedAtOffset
    case finishedDownload
    case readClosed
    case writeClosed
    case betterRoute
    case capturedStreams
    case webSocketOpened
    case webSocketClosed

    var bit: UInt64 { 1 << UInt64(self.rawValue) }
}

/// What is known of a class of delegates: which messages it answers itself.
///
/// There is no asking an object for its methods here. So the body that stands in for a missing method says so when it
/// runs (`MissingMethodFlag`), and what a class showed once is remembered: for a class it never changes.
final class DelegateTraits: Sendable {
    private static let known = Mutex<[ObjectIdentifier: DelegateTraits]>([:])

    private let implemented = Atomic<UInt64>(0)
    private let missing = Atomic<UInt64>(0)

    private init() {}

    static func of(_ delegate: AnyObject) -> DelegateTraits {
        let type = ObjectIdentifier(type(of: delegate))
        return self.known.withLock { known in
            if let traits = known[type] { return traits }
            let traits = DelegateTraits()
            known[type] = traits
            return traits
        }
    }

    /// `nil` while it was never asked.
    func implements(_ method: DelegateMethod) -> Bool? {
        if self.implemented.load(ordering: .relaxed) & method.bit != 0 { return true }
        return self.missing.load(ordering: .relaxed) & method.bit != 0 ? false : nil
    }

    func record(_ method: DelegateMethod, answers: Bool) {
        if answers {
            self.implemented.bitwiseOr(method.bit, ordering: .relaxed)
        } else {
            self.missing.bitwiseOr(method.bit, ordering: .relaxed)
        }
    }
}

/// One message to a delegate that wants an answer, in its two spellings.
struct DelegateRequest<Answer: Sendable>: Sendable {
    let delegate: DelegateProxy
    let method: DelegateMethod
    let asyncMethod: DelegateMethod
    let call: @Sendable (DelegateProxy, OneShotHandler<Answer>) -> Void
    let callAsync: @Sendable (DelegateProxy) async -> Answer

    var mayBeImplemented: Bool { self.delegate.mayImplement(self.method) || self.delegate.mayImplement(self.asyncMethod) }
}

/// A completion handler that was lent out: takes the first answer, from any thread, and ignores all others.
final class OneShotHandler<Answer: Sendable>: Sendable {
    private let completion: Mutex<(@Sendable (Answer) -> Void)?>

    init(_ completion: @escaping @Sendable (Answer) -> Void) {
        self.completion = Mutex(completion)
    }

    func callAsFunction(_ answer: Answer) {
        let completion = self.completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        completion?(answer)
    }
}

/// Set by the bodies that stand in for methods which a delegate leaves out.
final class MissingMethodFlag: Sendable {
    /// Of the call under way; `nil` where a program calls such a body itself.
    @TaskLocal static var current: MissingMethodFlag?

    private let flag = Atomic<Bool>(false)

    var wasCalled: Bool { self.flag.load(ordering: .relaxed) }

    static func set() {
        self.current?.flag.store(true, ordering: .relaxed)
    }

    /// - Returns: whether the delegate has a method of its own for what `body` called.
    static func watch(_ body: () -> Void) -> Bool {
        let mark = MissingMethodFlag()
        self.$current.withValue(mark, operation: body)
        return !mark.wasCalled
    }

    /// - Returns: `nil` where the delegate left the method out.
    static func watch<Answer>(_ body: () async -> Answer) async -> Answer? {
        let mark = MissingMethodFlag()
        let answer = await self.$current.withValue(mark, operation: body)
        return mark.wasCalled ? nil : answer
    }
}
