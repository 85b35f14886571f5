import ArgumentParser
import GatewayCore

extension LogSettings.Format: ExpressibleByArgument {}

extension LogSettings.Level: ExpressibleByArgument {}
