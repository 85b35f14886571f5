extension OperationTable {
    /// The whole interface. Each resource lists its own.
    static func make(_ context: ControlContext) -> OperationTable {
        let resources =
            HealthResource(context: context).operations + MetricsResource(context: context).operations
            + ConnectionsResource(context: context).operations + EventsResource(context: context).operations
        return OperationTable(resources + DocumentResource(context: context, others: resources).operations)
    }
}
