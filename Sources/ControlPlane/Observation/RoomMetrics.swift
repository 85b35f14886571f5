import Cluster
import GatewayCore
import Rooms

/// Metrics of the rooms, those of messages for each policy. None has the name of a room or a user in it.
struct RoomMetrics {
    private struct Gauges {
        var rooms = 0
        var members = 0
        var publications = 0
        var historyBytes = 0
    }

    private let hub: RoomHub

    init(_ hub: RoomHub) {
        self.hub = hub
    }

    func write(to text: inout OpenMetricsText) {
        self.writeGauges(to: &text)
        self.writeCounters(to: &text)
        if let redis = self.hub.redis { Self.write(redis, to: &text) }
    }

    private func writeGauges(to text: inout OpenMetricsText) {
        let (clients, users) = self.hub.users.counts
        text.family("sluice_room_clients", .gauge, "Connected clients of the rooms' protocol.")
        text.sample("sluice_room_clients", [], clients)
        text.family("sluice_room_users", .gauge, "Connected users with a name.")
        text.sample("sluice_room_users", [], users)
        text.family("sluice_room_inbox_bytes", .gauge, unit: "bytes", "Messages announced to loops, not taken yet.")
        text.sample("sluice_room_inbox_bytes", [], self.hub.bytesUnderWay)
        let policies = self.policies.sorted { $0.key < $1.key }
        func family(_ name: String, unit: String? = nil, _ help: String, _ value: KeyPath<Gauges, Int>) {
            text.family(name, .gauge, unit: unit, help)
            for (policy, gauges) in policies { text.sample(name, [("policy", policy)], gauges[keyPath: value]) }
        }
        family("sluice_rooms", "Rooms that have members or keep publications.", \.rooms)
        family("sluice_room_members", "Members of rooms.", \.members)
        family("sluice_room_history_publications", "Publications in histories.", \.publications)
        family("sluice_room_history_bytes", unit: "bytes", "Memory of histories.", \.historyBytes)
    }

    private var policies: [String: Gauges] {
        let now = self.hub.now
        return self.hub.rooms.reduce(into: [:]) { policies, room in
            let counts = room.counts(now: now)
            var gauges = policies[room.policy.name] ?? Gauges()
            gauges.rooms += 1
            gauges.members += counts.members
            gauges.publications += counts.publications
            gauges.historyBytes += counts.historyBytes
            policies[room.policy.name] = gauges
        }
    }

    private func writeCounters(to text: inout OpenMetricsText) {
        let policies = self.hub.counters.byPolicy
        func family(_ name: String, _ help: String, _ counter: PolicyCounters.Counter) {
            text.family(name, .counter, help)
            for (policy, counters) in policies {
                text.sample("\(name)_total", [("policy", policy)], counters[counter])
            }
        }
        family("sluice_room_publications", "Messages published in rooms.", .publications)
        family("sluice_room_deliveries", "Messages delivered to members.", .deliveries)
        family("sluice_room_recovered", "Publications that reconnecting clients recovered.", .recovered)
        family("sluice_room_unrecovered", "Reconnecting clients that could not recover.", .unrecovered)
        family("sluice_room_lost", "Messages that slow members lost by the policy of their room.", .lost)
        family("sluice_room_filtered", "Publications that members did not get because of their filters.", .filtered)
        func total(_ name: String, _ help: String, _ count: Int) {
            text.family(name, .counter, help)
            text.sample("\(name)_total", [], count)
        }
        total(
            "sluice_rooms_refused", "Uses of rooms that would have exceeded max-total.", self.hub.counters.refusedRooms)
        total(
            "sluice_rooms_refused_to_clients", "Rooms that would have exceeded max-total-per-client.",
            self.hub.counters.roomsRefusedToClients)
        total(
            "sluice_room_histories_removed", "Histories removed because of max-history-total.",
            self.hub.counters.removedHistories)
        text.family("sluice_room_errors", .counter, "Commands that were refused, by the code of the error.")
        for (code, count) in self.hub.counters.errors.sorted(by: { $0.key < $1.key }) {
            text.sample("sluice_room_errors_total", [("code", "\(code)")], count)
        }
        text.family(
            "sluice_room_disconnects", .counter, "Connections that the rooms ended, by the code of the Close frame.")
        for (code, count) in self.hub.counters.disconnects.sorted(by: { $0.key < $1.key }) {
            text.sample("sluice_room_disconnects_total", [("code", "\(code)")], count)
        }
    }

    private static func write(_ redis: RedisCounters.Values, to text: inout OpenMetricsText) {
        func family(_ name: String, _ help: String, _ count: Int) {
            text.family(name, .counter, help)
            text.sample("\(name)_total", [], count)
        }
        family("sluice_redis_commands", "Commands given to a connection to Redis.", redis.commands)
        family("sluice_redis_failures", "Commands that got no reply or an error.", redis.failures)
        family("sluice_redis_refusals", "Commands that no connection accepted.", redis.refused)
        family("sluice_redis_connections", "Connections that became ready.", redis.connections)
        family("sluice_redis_losses", "Connections that were lost, and attempts that failed.", redis.losses)
        family("sluice_redis_messages", "Messages received from channels.", redis.messages)
        family("sluice_redis_message_bytes", "Bytes of these messages.", redis.messageBytes)
        let name = "sluice_redis_latency_seconds"
        text.family(name, .histogram, unit: "seconds", "Time from sending a command until its reply.")
        var count = 0
        for (bound, answered) in zip(RedisCounters.bounds, redis.histogram) {
            count += answered
            text.sample("\(name)_bucket", [("le", "\(Double(bound) / 1_000_000)")], count)
        }
        count += redis.histogram.last ?? 0
        text.sample("\(name)_bucket", [("le", "+Inf")], count)
        text.sample("\(name)_count", [], count)
        text.sample("\(name)_sum", [], "\(redis.totalLatency / .seconds(1))")
    }
}
