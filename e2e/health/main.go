// Health reads JSON objects from standard input. For each object, it prints the status of kstatus
// and the health that a Lua script for Argo CD returns.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	script, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	objects := json.NewDecoder(os.Stdin)
	for {
		var text json.RawMessage
		if err := objects.Decode(&text); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		object := map[string]any{}
		if err := utiljson.Unmarshal(text, &object); err != nil {
			return err
		}
		result, err := status.Compute(&unstructured.Unstructured{Object: object})
		if err != nil {
			return err
		}
		health, err := evaluate(string(script), object)
		if err != nil {
			return err
		}
		fmt.Println(result.Status, health)
	}
}

// evaluate runs the script as Argo CD does: with few libraries, and the object as `obj`.
func evaluate(script string, object map[string]any) (string, error) {
	vm := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer vm.Close()
	libraries := map[string]lua.LGFunction{
		lua.LoadLibName:   lua.OpenPackage,
		lua.BaseLibName:   lua.OpenBase,
		lua.TabLibName:    lua.OpenTable,
		lua.StringLibName: lua.OpenString,
		lua.MathLibName:   lua.OpenMath,
	}
	for name, open := range libraries {
		if err := vm.CallByParam(lua.P{Fn: vm.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return "", err
		}
	}
	vm.SetGlobal("obj", value(vm, object))
	if err := vm.DoString(script); err != nil {
		return "", err
	}
	health, ok := vm.Get(-1).(*lua.LTable)
	if !ok {
		return "", fmt.Errorf("the script returned %s, not a table", vm.Get(-1).Type())
	}
	if message := health.RawGetString("message"); message.Type() != lua.LTString {
		return "", fmt.Errorf("the message is a %s, not a string", message.Type())
	}
	return health.RawGetString("status").String(), nil
}

// value converts a value of JSON into a value of Lua.
func value(vm *lua.LState, of any) lua.LValue {
	switch of := of.(type) {
	case bool:
		return lua.LBool(of)
	case int64:
		return lua.LNumber(of)
	case float64:
		return lua.LNumber(of)
	case string:
		return lua.LString(of)
	case []any:
		table := vm.NewTable()
		for _, item := range of {
			table.Append(value(vm, item))
		}
		return table
	case map[string]any:
		table := vm.NewTable()
		for key, item := range of {
			table.RawSetString(key, value(vm, item))
		}
		return table
	default:
		return lua.LNil
	}
}
