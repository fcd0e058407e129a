-- The health of an environment in Argo CD, by the conditions that kstatus reads.
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function health(status, type, default)
  local condition = conditions[type] or {}
  return { status = status, message = condition.message or default }
end
local function has(type, value)
  return conditions[type] ~= nil and conditions[type].status == value
end

if has("Stalled", "True") then
  return health("Degraded", "Stalled", "")
end
local generation = obj.metadata.generation
if status.observedGeneration and status.observedGeneration ~= generation then
  return { status = "Progressing", message = "The latest spec has not been observed yet" }
end
if has("Synced", "False") and conditions.Synced.reason == "ReconcilePaused" then
  return health("Suspended", "Synced", "Crossplane does not reconcile the environment")
end
if has("Ready", "True") then
  return health("Healthy", "Ready", "")
end
return health("Progressing", "Ready", "Crossplane has not composed the environment yet")
