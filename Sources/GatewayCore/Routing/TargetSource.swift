import GatewayConfiguration
import StreamTransport
import Synchronization
import WebSocketProtocol

/// The targets of a route by name. A request reads their file again if it changed. Shared by all loops.
final class TargetSource: Sendable {
    /// Files of a directory.
    private static let fileLimit = 1000
    /// Changes are looked for so often: clients must not decide how often files are read.
    private static let interval = Duration.seconds(1)

    fileprivate struct Known {
        /// By path: those that were read last; `nil` if they are not in use, or may be written still.
        var versions: [String: FileVersion]?
        /// When changes were looked for; `nil` before the first request.
        var checked: MonotonicInstant?
        var list: TargetList
        /// Why the present file is not in use; `nil` if it is.
        var problem: GatewayPlanError?
        /// Made for the first request.
        var routes: [EndpointURL: RoutePlan] = [:]
        /// Of these routes, in the order of their first requests.
        var upstreams: [UpstreamPlan] = []
        var upstreamsByURL: [EndpointURL: UpstreamPlan] = [:]
    }

    private let settings: TargetSettings
    /// Of the route, for each of its targets.
    private let configuration: RouteConfiguration
    private let known: Mutex<Known>

    /// - Parameter former: that of the route before a reload. The state of its upstreams is taken over.
    /// - Throws: `.file` or `.targets`.
    init(
        _ settings: TargetSettings, of route: RouteConfiguration, former: TargetSource? = nil
    ) throws(GatewayPlanError) {
        self.settings = settings
        // A request is admitted before its target is looked up.
        var configuration = route
        configuration.auth = nil
        self.configuration = configuration
        let versions = try Self.versions(of: settings.file)
        var known = Known(versions: Self.settled(versions), list: try Self.list(of: versions))
        known.upstreams = former?.upstreams ?? []
        known.forgetOthers()
        self.known = Mutex(known)
    }

    /// - Throws: `.file` if it cannot be read, `.targets` if it has a mistake.
    static func check(_ settings: TargetSettings) throws(GatewayPlanError) {
        _ = try self.list(of: self.versions(of: settings.file))
    }

    /// The upstreams of the targets that requests have named.
    var upstreams: [UpstreamPlan] { self.known.withLock { $0.upstreams } }

    /// The route to the target that the request names.
    /// - Throws: 404 without a name, and for one that is not in the file.
    func route(
        for match: RouteMatch, at now: MonotonicInstant, log: TunnelLog
    ) throws(HandshakeRefusal) -> RoutePlan {
        let name = match.value(of: self.settings.parameter) ?? match.queryValue(of: self.settings.parameter)
        let (route, problem) = self.known.withLock { known in
            let problem = self.refresh(&known, at: now)
            return (name.flatMap { known.list[$0] }.map { self.route(to: $0, &known) }, problem)
        }
        if let problem {
            let name = self.configuration.name
            log.log("targets of route '\(name)' stay as they were: \(problem)", level: .warning)
        }
        guard let route else { throw .noTarget }
        return route
    }

    /// - Returns: the mistake of a changed file; `nil` if there is none, or if it was returned before.
    private func refresh(_ known: inout Known, at now: MonotonicInstant) -> GatewayPlanError? {
        if let checked = known.checked, now < checked.advanced(by: Self.interval) { return nil }
        known.checked = now
        do throws(GatewayPlanError) {
            let versions = try Self.versions(of: self.settings.file)
            guard versions != known.versions else { return nil }
            known.list = try Self.list(of: versions)
            known.versions = Self.settled(versions)
            known.problem = nil
            known.forgetOthers()
            return nil
        } catch {
            // It may be usable the next time, without a change.
            known.versions = nil
            defer { known.problem = error }
            return known.problem == error ? nil : error
        }
    }

    private func route(to url: EndpointURL, _ known: inout Known) -> RoutePlan {
        if let route = known.routes[url] { return route }
        var configuration = self.configuration
        configuration.target = .url(url)
        let route = RoutePlan(configuration, upstream: known.upstream(of: url))
        known.routes[url] = route
        return route
    }
}

extension TargetSource.Known {
    fileprivate mutating func upstream(of url: EndpointURL) -> UpstreamPlan {
        if let kept = self.upstreamsByURL[url] { return kept }
        let configuration = UpstreamConfiguration(name: url.description, endpoints: [UpstreamEndpoint(url: url)])
        let upstream = UpstreamPlan(configuration, context: nil, proxy: nil)
        self.upstreams.append(upstream)
        self.upstreamsByURL[url] = upstream
        return upstream
    }

    /// Forgets the routes to targets that are not in the list.
    fileprivate mutating func forgetOthers() {
        let urls = self.list.urls
        self.routes = self.routes.filter { urls.contains($0.key) }
        let kept = self.upstreams.flatMap { one in one.configuration.endpoints.map { (url: $0.url, upstream: one) } }
            .filter { urls.contains($0.url) }
        self.upstreams = kept.map(\.upstream)
        self.upstreamsByURL = Dictionary(kept, uniquingKeysWith: { first, _ in first })
    }
}

// MARK: Reading

extension TargetSource {
    /// - Returns: `nil` while a file is so young that it may be in the midst of being written.
    private static func settled(_ versions: [String: FileVersion]) -> [String: FileVersion]? {
        let (now, second) = (Machine.wallClockMilliseconds() * 1_000_000, Int64(1_000_000_000))
        return versions.values.contains { (now - second...now + second).contains($0.modified) } ? nil : versions
    }

    /// By path: of the file, or of the files in the directory but those whose names begin with a dot.
    private static func versions(of path: String) throws(GatewayPlanError) -> [String: FileVersion] {
        guard let version = try self.version(path) else { throw GatewayPlanError(.file(path, .noSuchFile)) }
        guard version.kind == .folder else { return [path: version] }
        var versions: [String: FileVersion] = [:]
        for name in try self.names(in: path) {
            let path = "\(path)/\(name)"
            if let version = try self.version(path), version.kind == .regular { versions[path] = version }
        }
        return versions
    }

    private static func names(in folder: String) throws(GatewayPlanError) -> [String] {
        let listed: (entries: [OpenFile.Entry], isWhole: Bool)
        do throws(SystemError) {
            listed = try OpenFolder(folder).open("").entries()
        } catch {
            throw GatewayPlanError(.file(folder, error))
        }
        let names = listed.entries.map(\.name).filter { !$0.hasPrefix(".") }
        guard listed.isWhole, names.count <= Self.fileLimit else {
            throw GatewayPlanError(.targets("\(folder): expected at most \(Self.fileLimit) files, and 64 KiB of names"))
        }
        return names
    }

    /// - Returns: `nil` if there is no such file: one of a directory may be removed after it was listed.
    private static func version(_ path: String) throws(GatewayPlanError) -> FileVersion? {
        do throws(SystemError) {
            return try SystemFile.version(path)
        } catch {
            guard error != .noSuchFile else { return nil }
            throw GatewayPlanError(.file(path, error))
        }
    }

    private static func list(of versions: [String: FileVersion]) throws(GatewayPlanError) -> TargetList {
        var (list, room) = (TargetList(), TargetList.byteLimit)
        for (path, version) in versions.sorted(by: { $0.key < $1.key }) {
            // A FIFO would block.
            guard version.kind == .regular else { throw GatewayPlanError(.targets("\(path): expected a file")) }
            let bytes: [UInt8]
            do throws(SystemError) {
                bytes = try SystemFile.read(path, limit: room)
            } catch {
                throw GatewayPlanError(.file(path, error))
            }
            room -= bytes.count
            do throws(TargetListError) {
                try list.add(bytes)
            } catch {
                throw GatewayPlanError(.targets("\(path): \(error)"))
            }
        }
        return list
    }
}

extension HandshakeRefusal {
    fileprivate static let noTarget = HandshakeRefusal(
        status: 404, explanation: "There is no target of this name; check the URL.", fields: [],
        detail: "no target of this name")
}
