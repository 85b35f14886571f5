import Foundation
import Synchronization

/// A delegate cast to each delegate protocol once, with what is known about the methods that its class implements.
final class DelegateProxy: Sendable {
    let delegate: any URLSessionDelegate
    let task: (any URLSessionTaskDelegate)?
    let data: (any URLSessionDataDelegate)?
    let download: (any URLSessionDownloadDelegate)?
    let stream: (any URLSessionStreamDelegate)?
    let webSocket: (any URLSessionWebSocketDelegate)?
    private let traits: DelegateTraits

    init(_ delegate: any URLSessionDelegate) {
        self.delegate = delegate
        self.task = delegate as? any URLSessionTaskDelegate
        self.data = self.task == nil ? nil : delegate as? any URLSessionDataDelegate
        self.download = self.task == nil ? nil : delegate as? any URLSessionDownloadDelegate
        self.stream = self.task == nil ? nil : delegate as? any URLSessionStreamDelegate
        self.webSocket = self.task == nil ? nil : delegate as? any URLSessionWebSocketDelegate
        self.traits = DelegateTraits.of(delegate)
    }

    /// `false` if the delegate lacks the method's protocol, or if an earlier call showed that its class lacks the
    /// method.
    func mayImplement(_ method: DelegateMethod) -> Bool {
        self.conforms(for: method) && self.traits.implements(method) ?? true
    }

    private func conforms(for method: DelegateMethod) -> Bool {
        switch method {
        case .becameInvalid, .sessionChallenge, .sessionChallengeAsync, .finishedEvents: true
        case .createdTask, .redirection, .redirectionAsync, .taskChallenge, .taskChallengeAsync, .newBodyStream,
            .newBodyStreamAsync, .bodyStreamFromOffset, .bodyStreamFromOffsetAsync, .sentBody, .informationalResponse,
            .waiting, .metrics, .completion, .delayedRequest, .delayedRequestAsync:
            self.task != nil
        case .response, .responseAsync, .becameDownload, .becameStream, .data, .cacheProposal, .cacheProposalAsync:
            self.data != nil
        case .wroteData, .resumedAtOffset, .finishedDownload: self.download != nil
        case .readClosed, .writeClosed, .betterRoute, .capturedStreams: self.stream != nil
        case .webSocketOpened, .webSocketClosed: self.webSocket != nil
        }
    }

    /// Calls a synchronous method.
    /// - Returns: whether the delegate implements it.
    func notify(_ method: DelegateMethod, _ call: () -> Void) -> Bool {
        guard self.conforms(for: method) else { return false }
        if let isImplemented = self.traits.implements(method) {
            if isImplemented { call() }
            return isImplemented
        }
        let isImplemented = MissingMethodFlag(self.delegate, method).staysUnset(during: call)
        self.traits.record(method, isImplemented: isImplemented)
        return isImplemented
    }

    /// Calls an asynchronous method.
    /// - Returns: `nil` if the delegate does not implement it.
    func ask<Answer>(_ method: DelegateMethod, _ call: () async -> Answer) async -> Answer? {
        guard self.mayImplement(method) else { return nil }
        let answer = await MissingMethodFlag(self.delegate, method).result(of: call)
        self.traits.record(method, isImplemented: answer != nil)
        return answer
    }
}

extension DelegateProxy {
    /// Answers a program that called the default implementation of a method with a completion handler, as when it forwards
    /// its calls: by the method's asynchronous form, which is the same method on Apple's platforms.
    /// - Parameters:
    ///   - method: the asynchronous form.
    ///   - standard: the answer if the delegate implements neither.
    static func answer<Answer: Sendable>(
        for delegate: any URLSessionDelegate, by method: DelegateMethod, otherwise standard: Answer,
        to completion: @escaping @Sendable (Answer) -> Void, call: @escaping @Sendable () async -> Answer
    ) {
        let proxy = DelegateProxy(delegate)
        guard proxy.mayImplement(method) else { return completion(standard) }
        Task { completion(await proxy.ask(method, call) ?? standard) }
    }

    /// The same for the default implementation of an asynchronous method.
    /// - Parameter method: the form with a completion handler.
    static func answer<Answer: Sendable>(
        for delegate: any URLSessionDelegate, by method: DelegateMethod, otherwise standard: Answer,
        _ call: (OneShotHandler<Answer>) -> Void
    ) async -> Answer {
        let proxy = DelegateProxy(delegate)
        return await withCheckedContinuation { continuation in
            let handler = OneShotHandler<Answer> { continuation.resume(returning: $0) }
            if !proxy.notify(method, { call(handler) }) { handler(standard) }
        }
    }
}

extension [DelegateProxy] {
    /// Calls `method` on the first delegate that implements it. On the delegate queue.
    func notifyFirst(_ method: DelegateMethod, _ call: (DelegateProxy) -> Void) {
        for delegate in self where delegate.notify(method, { call(delegate) }) { return }
    }
}

/// The optional delegate methods: one that a delegate lacks is called on the next delegate.
enum DelegateMethod: Int {
    case becameInvalid
    case sessionChallenge
    case sessionChallengeAsync
    case createdTask
    case redirection
    case redirectionAsync
    case taskChallenge
    case taskChallengeAsync
    case newBodyStream
    case newBodyStreamAsync
    case bodyStreamFromOffset
    case bodyStreamFromOffsetAsync
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
    case capturedStreams
    case webSocketOpened
    case webSocketClosed
    case waiting
    case betterRoute
    case delayedRequest
    case delayedRequestAsync
    case finishedEvents

    fileprivate var bit: UInt64 { 1 << UInt64(self.rawValue) }
}

/// Which optional methods one delegate class implements.
///
/// Swift on Linux cannot ask an object whether it responds to a method. So the default implementation of each optional
/// method sets the `MissingMethodFlag` of its call, and the result of the first call is remembered: for a class it never
/// changes.
private final class DelegateTraits: Sendable {
    private static let byClass = Mutex<[ObjectIdentifier: DelegateTraits]>([:])

    private let implemented = Atomic<UInt64>(0)
    private let missing = Atomic<UInt64>(0)

    static func of(_ delegate: AnyObject) -> DelegateTraits {
        let type = ObjectIdentifier(type(of: delegate))
        return self.byClass.withLock { byClass in
            if let traits = byClass[type] { return traits }
            let traits = DelegateTraits()
            byClass[type] = traits
            return traits
        }
    }

    /// `nil` until the method was called once.
    func implements(_ method: DelegateMethod) -> Bool? {
        if self.implemented.load(ordering: .relaxed) & method.bit != 0 { return true }
        return self.missing.load(ordering: .relaxed) & method.bit != 0 ? false : nil
    }

    func record(_ method: DelegateMethod, isImplemented: Bool) {
        if isImplemented {
            self.implemented.bitwiseOr(method.bit, ordering: .relaxed)
        } else {
            self.missing.bitwiseOr(method.bit, ordering: .relaxed)
        }
    }
}

/// Set by the default implementations of the optional delegate methods.
final class MissingMethodFlag: Sendable {
    /// Of the call in progress; `nil` if the program itself calls a default implementation.
    @TaskLocal private static var current: MissingMethodFlag?

    private let delegate: ObjectIdentifier
    private let method: DelegateMethod
    private let flag = Atomic<Bool>(false)

    /// - Parameter delegate: must live as long as the flag.
    fileprivate init(_ delegate: AnyObject, _ method: DelegateMethod) {
        self.delegate = ObjectIdentifier(delegate)
        self.method = method
    }

    private var isSet: Bool { self.flag.load(ordering: .relaxed) }

    /// Has no effect within a call of another delegate or method: delegates may forward what they get to others.
    /// - Returns: `false` if the program itself called the default implementation, which must answer then.
    @discardableResult
    static func set(_ delegate: AnyObject, _ method: DelegateMethod) -> Bool {
        guard let current, current.method == method, current.delegate == ObjectIdentifier(delegate) else {
            return false
        }
        current.flag.store(true, ordering: .relaxed)
        return true
    }

    fileprivate func staysUnset(during call: () -> Void) -> Bool {
        Self.$current.withValue(self, operation: call)
        return !self.isSet
    }

    /// - Returns: `nil` if a default implementation ran.
    fileprivate func result<Answer>(of call: () async -> Answer) async -> Answer? {
        let answer = await Self.$current.withValue(self, operation: call)
        return self.isSet ? nil : answer
    }
}
