import Foundation
import GatewayConfiguration
import GatewayCore
import Synchronization
import URLLoading
import WebTokens

/// Fetches the key sets that the `tokens` of the running configuration name by their URLs, each in a task of its own.
final class TokenKeyFetcher: Sendable {
    /// Time that the start of the gateway waits for key sets.
    private static let startTimeout = Duration.seconds(5)

    private let log: TunnelLog
    private struct State {
        /// Made when it is needed.
        var session: URLSession?
        var tasks: [Task<Void, Never>] = []
    }

    private let state = Mutex(State())

    init(log: TunnelLog) {
        self.log = log
    }

    private static func makeSession() -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 10
        configuration.timeoutIntervalForResource = 20
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        return URLSession(configuration: configuration)
    }

    /// Follows these sources instead of the former ones.
    /// - Returns: when the first fetch of each has ended, at the latest after 5 seconds.
    func follow(_ sources: [TokenSource]) async {
        let published = sources.filter { $0.keySetURL != nil }
        let (firsts, first) = AsyncStream.makeStream(of: Void.self)
        self.state.withLock { state in
            for task in state.tasks { task.cancel() }
            state.tasks = []
            guard !published.isEmpty else { return }
            let session = state.session ?? Self.makeSession()
            state.session = session
            state.tasks = published.map { source in
                let follower = KeySetFollower(source, session: session, log: self.log)
                return Task { await follower.run { first.yield() } }
            }
        }
        guard !published.isEmpty else { return }
        let timeout = Task {
            try? await Task.sleep(for: Self.startTimeout)
            first.finish()
        }
        var missing = published.count
        for await _ in firsts {
            missing -= 1
            if missing == 0 { break }
        }
        timeout.cancel()
    }

    func stop() {
        self.state.withLock { state in
            for task in state.tasks { task.cancel() }
            state.session?.invalidateAndCancel()
            state = State()
        }
    }
}

/// Keeps the keys of one source up to date.
private final class KeySetFollower: Sendable {
    private let source: TokenSource
    private let url: String
    private let session: URLSession
    private let log: TunnelLog

    init(_ source: TokenSource, session: URLSession, log: TunnelLog) {
        self.source = source
        self.url = source.keySetURL ?? ""
        self.session = session
        self.log = log
    }

    /// Runs until its task is cancelled.
    /// - Parameter tried: called after the first fetch, successful or not.
    func run(tried: () -> Void) async {
        // One signal is enough, however many tokens have unknown keys.
        let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.source.verifier.observeUnknownKeys { signal.yield() }
        var schedule = KeyRefreshSchedule(interval: self.source.settings.refreshInterval, now: .now)
        var failure: String?
        await self.fetch(&schedule, &failure)
        tried()
        var timer = Self.timer(schedule, signal)
        for await _ in signals {
            guard !Task.isCancelled else { break }
            timer.cancel()
            // A signal before the time is one of an unknown key.
            if schedule.due > .now { schedule.unknownKeyOccurred(at: .now) }
            if schedule.due <= .now { await self.fetch(&schedule, &failure) }
            timer = Self.timer(schedule, signal)
        }
        timer.cancel()
    }

    /// Signals when the next fetch is due.
    private static func timer(
        _ schedule: KeyRefreshSchedule, _ signal: AsyncStream<Void>.Continuation
    ) -> Task<Void, Never> {
        let due = schedule.due
        return Task {
            try? await Task.sleep(until: due, clock: .continuous)
            if !Task.isCancelled { signal.yield() }
        }
    }

    private func fetch(_ schedule: inout KeyRefreshSchedule, _ failure: inout String?) async {
        do {
            let bytes = try await self.load()
            let keys = try TokenKeySet.read(published: bytes)
            self.report(keys, after: failure)
            self.source.verifier.replaceKeys(keys)
            failure = nil
            schedule.fetched(at: .now)
        } catch {
            if Task.isCancelled { return }
            schedule.fetchFailed(at: .now)
            let text = "\(error)"
            // Repeated once, not every minute.
            if failure != text { self.warn("token keys cannot be fetched: \(text)") }
            failure = text
        }
    }

    private func report(_ keys: TokenKeySet, after failure: String?) {
        let former = self.source.verifier.keys
        if failure != nil || former.identifiers != keys.identifiers {
            self.log.log("\(keys.keys.count) token keys of '\(self.source.settings.name)' fetched", level: .info)
        }
        guard former.refused != keys.refused else { return }
        for reason in keys.refused.prefix(5) { self.warn("a token key is not used: \(reason)") }
    }

    private func warn(_ text: String) {
        self.log.log("tokens '\(self.source.settings.name)': \(text)", level: .warning)
    }

    /// - Throws: a text for the log.
    private func load() async throws -> [UInt8] {
        guard let url = URL(string: self.url) else { throw KeySetFailure("the URL is not valid") }
        var request = URLRequest(url: url)
        request.setValue("application/jwk-set+json, application/json", forHTTPHeaderField: "Accept")
        do {
            let (bytes, response) = try await self.session.bytes(for: request, delegate: RedirectionRefuser())
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            guard status == 200 else { throw KeySetFailure("the server answered \(status)") }
            var content: [UInt8] = []
            for try await byte in bytes {
                guard content.count < TokenKeySet.byteLimit else {
                    throw KeySetFailure("the answer is longer than \(TokenKeySet.byteLimit) bytes")
                }
                content.append(byte)
            }
            return content
        } catch let error as URLError {
            throw KeySetFailure(error.localizedDescription)
        }
    }
}

/// Why a key set could not be fetched.
private struct KeySetFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// A redirection could lead away from https, or to a server that the configuration does not name.
private final class RedirectionRefuser: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        nil
    }
}
