import GatewayCore
import HTTPTypes
import HummingbirdCore

/// Writes a line of the log for every write.
struct LoggedAudit: AuditTrail {
    let log: TunnelLog

    func record(_ call: ControlCall, status: Int, code: String?) {
        self.log.audit(
            operation: call.operation.name, path: String((call.request.head.path ?? "").prefix { $0 != "?" }),
            caller: call.caller.name, status: status, code: code)
    }
}
