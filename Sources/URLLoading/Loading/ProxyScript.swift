import DequeModule
import Dispatch
import Foundation
import PACEngine
import StreamTransport
import Synchronization

/// Asks a script for proxies (PAC): loads it when it is first needed, and again after an hour, and evaluates it on a thread of
/// its own, which ends when nothing waits. At most 256 questions wait.
package final class ProxyScript: Sendable {
    package enum Source: Hashable, Sendable {
        case url(URL)
        case text(String)
        /// With the reason.
        case unusable(String)
    }

    private struct Question: Sendable {
        let url: String
        let host: String
        let answer: @Sendable (Result<[ProxyAddress?], ProxySettingsError>) -> Void
    }

    private struct Queue {
        var waiting: Deque<Question> = []
        var isRunning = false
    }

    /// State of the thread between two evaluations.
    private struct Loaded {
        var engine: ProxyScriptEngine?
        var loadedAt = ContinuousInstant.now
        /// Of names that were looked up; empty for a name without an address.
        var addresses: [String: String] = [:]
        var addressesSince = ContinuousInstant.now
    }

    private static let waitingLimit = 256
    private static let lifetime = Duration.seconds(3600)
    private static let addressLifetime = Duration.seconds(60)
    private static let addressLimit = 256
    /// Of one question.
    private static let lookupLimit = 20
    /// Routes of an answer that are tried: each may take a connection's time, and no timeout ends all of them.
    private static let routeLimit = 32
    private static let lookupTimeout = DispatchTimeInterval.seconds(5)
    /// For loading the script.
    private static let loadTimeout: TimeInterval = 30

    private let source: Source
    /// Of the session.
    private let configuration: URLSessionConfiguration
    private let queue = Mutex(Queue())
    private let loaded = Mutex(Loaded())

    init(_ source: Source, _ configuration: URLSessionConfiguration) {
        self.source = source
        self.configuration = configuration
    }

    /// - Parameters:
    ///   - scheme: of the URL, or `stream`.
    ///   - completion: called once, on any thread.
    func ask(
        _ url: URL, scheme: String, host: String,
        _ completion: @escaping @Sendable (Result<[ProxyAddress?], ProxySettingsError>) -> Void
    ) {
        let question = Question(url: Self.text(of: url, scheme: scheme, host: host), host: host, answer: completion)
        let (isTaken, startsThread) = self.queue.withLock { queue -> (Bool, Bool) in
            guard queue.waiting.count < Self.waitingLimit else { return (false, false) }
            queue.waiting.append(question)
            defer { queue.isRunning = true }
            return (true, !queue.isRunning)
        }
        if !isTaken {
            completion(.failure(Self.error("more than \(Self.waitingLimit) connections wait for it")))
        } else if startsThread, !SystemThread.start(named: "proxy-script", { self.work() }) {
            self.failWaiting(Self.error("the system gives no thread for it"), isRunning: false)
        }
    }

    /// The script learns no password, and of what TLS protects only the server.
    private static func text(of url: URL, scheme: String, host: String) -> String {
        let server = (host.contains(":") ? "[\(host)]" : host) + (url.port.map { ":\($0)" } ?? "")
        guard scheme == "http" || scheme == "ws" else { return "\(scheme)://\(server)/" }
        return "\(scheme)://\(server)\(url.requestTarget)"
    }

    private static func error(_ reason: String) -> ProxySettingsError {
        ProxySettingsError(text: LoadFailure.sentence("The proxy script cannot be used: \(reason)"))
    }

    // MARK: The thread

    private func work() {
        while let question = self.next() {
            do throws(ProxySettingsError) {
                let routes = try self.loaded.withLock { (loaded) throws(ProxySettingsError) in
                    try self.decide(&loaded, question)
                }
                question.answer(.success(routes))
            } catch {
                question.answer(.failure(error))
            }
        }
    }

    private func next() -> Question? {
        self.queue.withLock { queue in
            if let question = queue.waiting.popFirst() { return question }
            queue.isRunning = false
            return nil
        }
    }

    private func decide(_ loaded: inout Loaded, _ question: Question) throws(ProxySettingsError) -> [ProxyAddress?] {
        let engine = try self.engine(&loaded)
        if loaded.addressesSince.duration(to: .now) > Self.addressLifetime
            || loaded.addresses.count >= Self.addressLimit
        {
            loaded.addresses = [:]
            loaded.addressesSince = .now
        }
        for _ in 0...Self.lookupLimit {
            do throws(ProxyScriptFailure) {
                let answer = try engine.evaluate(
                    url: question.url, host: question.host, names: loaded.addresses,
                    ownAddress: InterfaceAddress.ipv4 ?? "127.0.0.1")
                switch answer {
                case .proxies(let text): return try Self.routes(text)
                case .lookup(let name): loaded.addresses[name] = self.address(of: name)
                }
            } catch {
                throw Self.error("\(error)")
            }
        }
        throw Self.error("it looks more than \(Self.lookupLimit) names up for one URL")
    }

    /// The format's `PROXY`, `HTTP`, `HTTPS`, `SOCKS` (version 4, as in browsers), `SOCKS4`, `SOCKS5` and `DIRECT`,
    /// separated by semicolons. Others are ignored, unless there is nothing else, and so is what follows the first 32.
    private static func routes(_ text: String) throws(ProxyScriptFailure) -> [ProxyAddress?] {
        var routes: [ProxyAddress?] = []
        // The last piece is all the rest.
        for entry in text.split(separator: ";", maxSplits: self.routeLimit).prefix(self.routeLimit) {
            let words = entry.split { $0 == " " || $0 == "\t" || $0.isNewline }
            switch (words.first?.uppercased(), words.count) {
            case ("DIRECT", 1): routes.append(nil)
            case (let kind?, 2):
                guard let scheme = Self.schemes[kind], let proxy = ProxyAddress("\(scheme)://\(words[1])") else {
                    continue
                }
                routes.append(proxy)
            default: continue
            }
        }
        guard routes.isEmpty else { return routes }
        guard text.allSatisfy({ $0 == ";" || $0.isWhitespace }) else {
            throw .failed("it chose “\(text.prefix(200))”, which names no proxy")
        }
        return [nil]
    }

    private static let schemes = [
        "PROXY": "http", "HTTP": "http", "HTTPS": "https", "SOCKS": "socks4a", "SOCKS4": "socks4a", "SOCKS5": "socks5h",
    ]

    /// Asks the session's resolver or, without one, the system.
    /// - Returns: empty if the name has no address.
    private func address(of name: String) -> String {
        let found = Mutex("")
        let isDone = DispatchSemaphore(value: 0)
        let answer: @Sendable ([SocketAddress]) -> Void = { addresses in
            found.withLock { $0 = addresses.first { $0.isIPv4 }?.host ?? "" }
            isDone.signal()
        }
        if let resolve = self.configuration.resolve {
            resolve(name, 0) { answer((try? $0.get()) ?? []) }
        } else {
            guard ResolverThreads.shared.look(up: name, answer) else { return "" }
        }
        guard isDone.wait(timeout: .now() + Self.lookupTimeout) == .success else { return "" }
        return found.withLock { $0 }
    }

    // MARK: Loading

    private func engine(_ loaded: inout Loaded) throws(ProxySettingsError) -> ProxyScriptEngine {
        if let engine = loaded.engine, loaded.loadedAt.duration(to: .now) < Self.lifetime { return engine }
        var isOffline = false
        do throws(ProxyScriptFailure) {
            let engine = try ProxyScriptEngine(try self.text(&isOffline))
            loaded = Loaded(engine: engine)
            return engine
        } catch {
            // Requests that wait meanwhile would wait as long for the same answer.
            var error = Self.error("\(error)")
            error.isOffline = isOffline
            self.failWaiting(error, isRunning: true)
            throw error
        }
    }

    private func failWaiting(_ error: ProxySettingsError, isRunning: Bool) {
        let waiting = self.queue.withLock { queue in
            defer { queue = Queue(isRunning: isRunning) }
            return queue.waiting
        }
        for question in waiting { question.answer(.failure(error)) }
    }

    /// - Parameter isOffline: set if this machine has no way to the script's server.
    private func text(_ isOffline: inout Bool) throws(ProxyScriptFailure) -> String {
        switch self.source {
        case .text(let text): return text
        case .unusable(let reason): throw .failed(reason)
        case .url(let url):
            let load = ProxyScriptLoad(url, self.configuration, timeout: Self.loadTimeout)
            defer { isOffline = load.isOffline }
            let data = try load.run()
            return String(data: data, encoding: .utf8) ?? String(data: data, encoding: .isoLatin1) ?? ""
        }
    }
}

/// Loads a script, without a proxy. It is used once.
// Its state is in a mutex.
private final class ProxyScriptLoad: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let url: URL
    private let configuration: URLSessionConfiguration
    private let isDone = DispatchSemaphore(value: 0)
    private let result = Mutex<Result<Data, ProxyScriptFailure>>(.success(Data()))
    private let offlineFlag = Atomic(false)

    var isOffline: Bool { self.offlineFlag.load(ordering: .relaxed) }

    init(_ url: URL, _ configuration: URLSessionConfiguration, timeout: TimeInterval) {
        self.url = url
        self.configuration = .ephemeral
        self.configuration.connectionProxyDictionary = [:]
        self.configuration.certificateAuthorities = configuration.certificateAuthorities
        self.configuration.permitsAddress = configuration.permitsAddress
        self.configuration.resolve = configuration.resolve
        self.configuration.timeoutIntervalForResource = timeout
    }

    func run() throws(ProxyScriptFailure) -> Data {
        let session = URLSession(configuration: self.configuration, delegate: self, delegateQueue: nil)
        session.dataTask(with: self.url).resume()
        session.finishTasksAndInvalidate()
        self.isDone.wait()
        return try self.result.withLock { $0 }.get()
    }

    private func fail(_ reason: String) {
        self.result.withLock { result in
            if case .success = result { result = .failure(.failed("\(self.url.absoluteString): \(reason)")) }
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        let status = (response as? HTTPURLResponse)?.statusCode ?? 200
        if status != 200 { self.fail("the server answered \(status)") }
        completionHandler(status == 200 ? .allow : .cancel)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let isTooLong = self.result.withLock { result in
            guard case .success(let before) = result else { return false }
            result = .success(before + data)
            return before.count + data.count > ProxyScriptEngine.sourceLimit
        }
        guard isTooLong else { return }
        self.fail("it has more than \(ProxyScriptEngine.sourceLimit) bytes")
        dataTask.cancel()
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { self.fail(error.localizedDescription) }
        if (error as? URLError)?.code == .notConnectedToInternet { self.offlineFlag.store(true, ordering: .relaxed) }
        self.isDone.signal()
    }
}
